// Passkeys: asks the browser for a passkey, and sends its response with the form.

const decode = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
const encode = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)))
  .replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

/** Messages for errors of the browser, by their names. */
const faults = {
  InvalidStateError: "This device already has a passkey for you. Sign in with it, or use another device.",
  NotAllowedError: "No passkey was used, because the request was canceled or timed out. Try again.",
  NotSupportedError: "This device cannot store a passkey for this console. Use another device or a security key.",
};

/** Return why the browser can't use passkeys on this page, undefined if it can. */
function findObstacle(form) {
  const { origin } = form.dataset;
  if (window.location.origin !== origin) return `Passkeys work only at ${origin}. Open the console there.`;
  if (!window.PublicKeyCredential) return "This browser does not support passkeys. Use a current browser.";
  return undefined;
}

/** Return the options of the ceremony with their binary members. */
async function fetchOptions(form) {
  const body = new URLSearchParams(new FormData(form));
  const response = await fetch(form.dataset.options, { method: "POST", body });
  const options = await response.json();
  if (!response.ok) throw new Error(options.detail);
  options.challenge = decode(options.challenge);
  if (options.user) options.user.id = decode(options.user.id);
  for (const each of options.excludeCredentials ?? []) each.id = decode(each.id);
  return options;
}

/** Return a credential as JSON; browsers before 2025 lack `toJSON`. */
function describe(credential) {
  const response = {};
  for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
    if (credential.response[name]) response[name] = encode(credential.response[name]);
  }
  const id = encode(credential.rawId);
  return JSON.stringify({ id, rawId: id, type: credential.type, response, clientExtensionResults: {} });
}

/** Fill in the response of an authenticator, and submit the form. */
async function perform(form) {
  const publicKey = await fetchOptions(form);
  const credential = form.dataset.passkey === "create"
    ? await navigator.credentials.create({ publicKey })
    : await navigator.credentials.get({ publicKey });
  form.elements.credential.value = describe(credential);
  form.requestSubmit();
}

for (const form of document.querySelectorAll("form[data-passkey]")) {
  const message = form.querySelector("[data-fault]");
  const button = form.querySelector("button");
  const report = (text) => { message.textContent = text; message.hidden = false; };
  const obstacle = findObstacle(form);
  if (obstacle) {
    report(obstacle);
    button.disabled = true;
  }
  form.addEventListener("submit", async (event) => {
    if (form.elements.credential.value) return;
    event.preventDefault();
    if (button.disabled) return;
    button.disabled = true;
    message.hidden = true;
    try {
      await perform(form);
    } catch (error) {
      report(faults[error.name] ?? error.message);
      button.disabled = false;
    }
  });
}
