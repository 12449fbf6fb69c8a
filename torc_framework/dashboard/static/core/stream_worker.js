// The shared worker of all tabs of a browser that show this dashboard: it holds their one event stream.
//
// It lives as long as any of the tabs, so that no tab has to take the stream over from one that is closed. It ends with the
// process of the tab that started it if that crashes; tabs that do not hear from it start another one.

import { SharedStream } from "./shared_stream.js";

const ALIVE_MS = 5000;
const shared = new SharedStream(new URL("../../", location.href).href);

addEventListener("connect", (event) => {
  const port = /** @type {MessageEvent} */ (event).ports[0];
  /** @param {import("./shared_stream.js").StreamMessage} message */
  const reader = (message) => port.postMessage(message);
  port.addEventListener("message", ({ data }) => shared.follow(reader, data.workflow, data.user));
  const timer = setInterval(() => reader({ name: "alive", data: null }), ALIVE_MS);
  // A tab that crashed does not say so itself.
  port.addEventListener("close", () => {
    clearInterval(timer);
    shared.follow(reader, null, "");
  });
  port.start();
});
