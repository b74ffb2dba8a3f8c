// A certified OpenID provider with one client: `node oidc_provider.mjs MODULE SETTINGS`.
const [module, given] = process.argv.slice(2);
const { default: Provider } = await import(module);
const settings = JSON.parse(given);

const provider = new Provider(settings.issuer, {
  clients: [{
    client_id: settings.client,
    client_secret: settings.secret,
    redirect_uris: [settings.redirect],
    backchannel_logout_uri: settings.logout,
    backchannel_logout_session_required: true,
    id_token_signed_response_alg: "ES256",
  }],
  jwks: { keys: settings.keys },
  cookies: { keys: ["a key of the tests"] },
  claims: { openid: ["sub", "roles"] },
  conformIdTokenClaims: false,
  features: { devInteractions: { enabled: true }, backchannelLogout: { enabled: true } },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, roles: ["admin"] }) }),
  // It asks nobody but the service under test, which is on this machine
  fetch: (url, { dispatcher, ...options }) => fetch(url, options),
});
provider.on("backchannel.error", (_, error) => console.error("backchannel.error", error.message));
provider.on("server_error", (_, error) => console.error("server_error", error.stack));
provider.listen(settings.port, "127.0.0.1", () => console.log("listening"));
