export { Component, Fragment, createContext, render } from "preact";
export { useEffect, useLayoutEffect, useRef, useState, useMemo, useCallback, useContext, useId } from "preact/hooks";
export { html } from "htm/preact";
export { signal, computed, effect, batch, untracked, useSignal, useComputed, useSignalEffect } from "@preact/signals";
