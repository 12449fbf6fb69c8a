// The keys of the whole page.

import { useEffect } from "../vendor/ui.js";
import { refreshes } from "../core/api.js";
import { defineKey } from "../core/keyboard.js";
import { go, route, workflowId } from "../core/router.js";
import { WORKFLOW_VIEWS } from "./view_table.js";

/** Defines the keys while the page stands; shows nothing. */
export function PageKeys() {
  useEffect(() => {
    const ends = [
      defineKey("?", "Help", () => go(["help"])),
      defineKey("/", "Search or filter", focusSearch),
      defineKey("r", "Load again", () => (refreshes.value += 1)),
      defineKey("Escape", "One level up", goUp),
      defineKey("g w", "Workflows", () => go(["w"])),
      defineKey("g c", "Create", () => go(["create"])),
      ...WORKFLOW_VIEWS.filter((view) => view.key).flatMap(({ name, title, key }, index) => {
        const open = () => {
          const id = workflowId();
          if (id !== null) go(name ? ["w", id, name] : ["w", id]);
        };
        return [
          defineKey(`g ${key}`, `${title} of the workflow`, open),
          ...(index < 9 ? [defineKey(String(index + 1), `${title} of the workflow`, open)] : []),
        ];
      }),
    ];
    return () => ends.forEach((end) => end());
  }, []);
  return null;
}

function focusSearch() {
  const field = /** @type {HTMLInputElement | null} */ (document.querySelector("main [data-search]"));
  field?.focus();
  field?.select();
}

function goUp() {
  const { path } = route.value;
  const id = workflowId();
  if (id === null) go(["w"]);
  else if (path[2] === "j") go(["w", id, "jobs"]);
  else go(path.length > 2 ? ["w", id] : ["w"]);
}
