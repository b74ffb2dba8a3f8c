"""Word lists that decide whether a name or a word after `user` is an entity."""

from __future__ import annotations

FILE_SUFFIXES = frozenset(["cab", "java", "mov", "pm", "properties", "ps", "py", "zip"])
"""Public suffixes that are also file suffixes: without context, such a name is a file."""

SCRIPT_SUFFIXES = frozenset(["cc", "md", "ml", "pl", "rs", "sh", "so", "st", "tf", "vi"])
"""The same, but also common in domains: with three labels, such a name is a domain."""

CODE_SUFFIXES = frozenset(
    [
        *("app", "auto", "bar", "beer", "blog", "boo", "cab", "call", "chat", "click", "codes"),
        *("data", "date", "day", "dev", "directory", "do", "domains", "download", "email"),
        *("events", "exchange", "fit", "foo", "frl", "group", "help", "host", "id", "in", "info"),
        *("int", "is", "it", "link", "list", "live", "locker", "management", "map", "me", "media"),
        *("menu", "name", "net", "network", "next", "ninja", "now", "one", "page", "pub", "report"),
        *("rest", "run", "search", "security", "select", "services", "show", "site", "so", "study"),
        *("style", "support", "target", "test", "to", "tools", "top", "total", "trade", "training"),
        *("video", "watch", "work", "zone", "as", "io", "channel", "call", "builders", "host"),
    ]
)
"""Public suffixes that are also names of fields and functions."""

CODE_WORDS = frozenset(
    [
        *("account", "agent", "alert", "app", "args", "array", "asset", "asp", "attacker", "auth"),
        *("bucket", "cloud", "client", "cluster", "code", "config", "console", "container", "core"),
        *("ctx", "context", "data", "date", "datetime", "db", "destination", "details", "device"),
        *(
            "dns",
            "document",
            "dst",
            "el",
            "email",
            "entity",
            "env",
            "err",
            "error",
            "event",
            "file",
            "foo",
        ),
        *("fields", "form", "geo", "group", "host", "http", "image", "incident", "input", "item"),
        *("java", "javax", "json", "kernel", "key", "kibana", "kubernetes", "lib", "list", "log"),
        *("logger", "logging", "machine", "math", "message", "meta", "metadata", "model", "module"),
        *("namespace", "network", "node", "obj", "object", "observer", "options", "orchestrator"),
        *("org", "os", "output", "package", "page", "parent", "params", "payload", "pod", "prefs"),
        *("process", "props", "query", "re", "record", "registry", "req", "request", "resource"),
        *("res", "response", "result", "root", "rule", "runtime", "schema", "self", "server"),
        *("service", "session", "signal", "socket", "source", "spec", "src", "state", "string"),
        *("struct", "sys", "system", "table", "tags", "target", "task", "test", "this", "thread"),
        *("threat", "time", "tls", "url", "user", "util", "utils", "values", "vulnerability"),
        *("window", "winlog", "x509", "com", "net", "io", "android", "sun", "image", "vm"),
    ]
)
"""First labels of field and module names."""

NOT_DOMAINS = frozenset(
    [
        *("ado.net", "asp.net", "command.com", "paint.net", "vb.net", "configure.in"),
        *("manifest.in", "requirements.in", "wscript.sh", "console.info", "logger.info"),
    ]
)
"""Products, programs and files whose names look like domains."""

CUES = frozenset(
    ["computer", "device", "for", "host", "hostname", "machine", "user", "workstation"]
)
"""Words that the name of a user or machine may follow."""

NOBODY = frozenset(
    [
        *("", "-", "--", "?", "*", "unknown", "n/a", "na", "none", "null", "nil", "nobody."),
        *("true", "false", "yes", "no", "undefined", "empty", "anonymous", "default", "any"),
        *("all", "not", "see", "is", "the", "a", "an", "no", "(null)", "redacted", "localsystem"),
    ]
)
"""Placeholders for no value."""

NOT_USERS = NOBODY | frozenset(
    [
        *("accepted", "access", "accessed", "account", "accounts", "action", "actions", "activity"),
        *("added", "agent", "agents", "and", "are", "as", "asked", "at", "attempted"),
        *("authenticated", "authentication", "awareness", "base", "based", "because", "behavior"),
        *(
            "behaviour",
            "by",
            "called",
            "can",
            "cannot",
            "changed",
            "clicked",
            "clicks",
            "complained",
        ),
        *("confirmed", "connected", "console", "context", "could", "created", "credential"),
        *("credentials", "data", "database", "deleted", "denied", "did", "directory", "does"),
        *(
            "downloaded",
            "enabled",
            "entered",
            "entity",
            "error",
            "executed",
            "exists",
            "experience",
        ),
        *("failed", "feedback", "field", "for", "forgot", "found", "from", "gave", "got", "group"),
        *("groups", "guide", "had", "has", "have", "he", "id", "ids", "if", "ignored", "impact"),
        *("in", "info", "information", "initiated", "input", "installed", "interaction"),
        *("interface", "into", "invalid", "it", "lacks", "list", "locked", "logged", "login"),
        *("logins", "logon", "logons", "logs", "management", "may", "might", "mode", "must"),
        *("name", "names", "needs", "nor", "object", "of", "on", "only", "opened", "or", "owner"),
        *("password", "passwords", "permission", "permissions", "principal", "privileges"),
        *("profile", "provided", "ran", "received", "records", "removed", "reported", "reports"),
        *("requested", "requests", "risk", "role", "roles", "said", "saw", "says", "sent"),
        *("service", "session", "sessions", "settings", "she", "should", "sign", "signed", "so"),
        *("space", "started", "state", "status", "story", "submitted", "successfully", "that"),
        *("then", "they", "this", "to", "token", "traffic", "tried", "type", "typed", "under"),
        *("unlocked", "updated", "used", "using", "visited", "visits", "was", "we", "were"),
        *("when", "where", "which", "who", "whose", "will", "with", "without", "would", "you"),
        *("your", "illegal", "another", "every", "each", "his", "her", "its", "their", "one"),
        *("these", "those", "some", "such", "me", "us", "them", "user", "users"),
    ]
)
"""Words that follow `user` in sentences and are not names."""

AFTER_A_USER = frozenset(
    [
        *("accessed", "added", "at", "attempted", "authenticated", "by", "cannot", "changed"),
        *(
            "clicked",
            "connected",
            "could",
            "do",
            "created",
            "deleted",
            "disabled",
            "does",
            "downloaded",
        ),
        *("enabled", "executed", "failed", "for", "from", "had", "has", "in", "initially"),
        *("installed", "is", "launched", "locked", "logged", "login", "logon", "mapped", "not"),
        *("on", "opened", "performed", "port", "ran", "requested", "reset", "sent", "signed"),
        *("started", "successfully", "to", "tried", "unlocked", "updated", "used", "using"),
        *("via", "was", "were", "will", "with"),
    ]
)
"""Words that follow the name of a user in sentences."""

BEFORE_USER = frozenset(
    ["as", "authenticating", "by", "closed", "for", "from", "illegal", "invalid", "of", "under"]
)
"""Words before `user` if a name follows."""

BEFORE_FOR = frozenset(
    [
        *("password", "publickey", "failed", "keyboard-interactive/pam", "hostbased", "login"),
        *("logon", "gssapi-with-mic", "none", "accepted", "failure"),
    ]
)
"""Words before `for` if a user follows, in logs of sshd and su."""

VERSION_WORDS = frozenset(
    [
        *("version", "versions", "ver", "v", "build", "release", "firmware", "oid", "revision"),
        *("section", "chapter", "annex"),
    ]
)
"""Words before four dotted numbers that are not an address."""

IDENTIFIER_WORDS = frozenset(
    ["commit", "session", "trace", "span", "request", "transaction", "token", "nonce", "etag"]
)
"""Words before hex digits that are not a file hash."""

ARTICLES = frozenset(["the", "a", "an", "this", "that", "each", "every", "which"])
"""Words before `user:` as part of a sentence instead of a field."""

METHODS = frozenset(
    ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "PROPFIND"]
)
"""Words before a path on a web server (RFC 9110, section 9.3)."""

MONTHS = frozenset(
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
)
"""Months in syslog (RFC 3164, section 4.1.2)."""

REGISTRY_HIVES = frozenset(["hklm", "hkcu", "hku", "hkcr", "hkcc", "registry"])
"""Abbreviated roots of the Windows registry; full names begin with `HKEY_`."""
