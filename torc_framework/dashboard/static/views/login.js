// Log-in: by the start token of torc-dash, or by name and password where the server requires them.

import { html, useEffect, useState } from "../vendor/ui.js";
import { send, session } from "../core/api.js";
import { Failure } from "../parts/basics.js";
import { closeDialog } from "../parts/dialog.js";

/** The forms that the server offers. The address after "#" stays, so that the reader arrives where the link leads. */
export function Login() {
  const logins = session.value?.logins ?? [];
  useEffect(closeDialog, []); // it was opened in the session that has ended
  return html`<main class="alone">
    <h1>Torc</h1>
    ${session.value?.is_owner ? html`<p>The server behind requires your name and password as well.</p>` : ""}
    ${logins.includes("password") ? html`<${PasswordForm} />` : ""}
    ${logins.includes("token") ? html`<${TokenForm} />` : ""}
  </main>`;
}

/** @param {Record<string, string>} body */
async function logIn(body) {
  session.value = await send("POST", "login", body);
}

function PasswordForm() {
  return html`<${Form} title="Log in" fields=${[
    { name: "username", label: "Name", type: "text", complete: "username" },
    { name: "password", label: "Password", type: "password", complete: "current-password" },
  ]} />`;
}

function TokenForm() {
  return html`<${Form} title="Log in with the start token" fields=${[{ name: "token", label: "Token", type: "password", complete: "off" }]}>
    <p class="muted">torc-dash printed an address with the token when it started; open that address, or paste the token here.</p>
  <//>`;
}

/** @param {{title: string, fields: {name: string, label: string, type: string, complete: string}[], children?: any}} props */
function Form({ title, fields, children }) {
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [isBusy, setBusy] = useState(false);
  const submit = async (/** @type {any} */ event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await logIn(/** @type {Record<string, string>} */ (Object.fromEntries(new FormData(event.currentTarget))));
    } catch (caught) {
      setError(/** @type {Error} */ (caught));
    }
    setBusy(false);
  };
  return html`<form class="card login" onSubmit=${submit}>
    <h2>${title}</h2>
    ${children}
    ${fields.map(
      ({ name, label, type, complete }) => html`<label key=${name}>${label}<input name=${name} type=${type} autocomplete=${complete} required /></label>`,
    )}
    <${Failure} error=${error} />
    <button type="submit" class="primary" disabled=${isBusy}>Log in</button>
  </form>`;
}
