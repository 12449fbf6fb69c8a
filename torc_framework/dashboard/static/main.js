// Starts the page.

import { html, render } from "./vendor/ui.js";
import { watchServer } from "./core/api.js";
import { followWorkflow } from "./core/live.js";
import { loadSession } from "./core/start.js";
import { answerActionRequests } from "./parts/action_dialog.js";
import { App } from "./parts/shell.js";

const place = document.getElementById("app");
if (place) render(html`<${App} />`, place);
followWorkflow();
watchServer();
answerActionRequests();
loadSession();
