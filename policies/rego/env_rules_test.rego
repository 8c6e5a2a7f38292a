package tollgate.library.env_rules_test

import data.tollgate.library.env_rules
import data.tollgate.testing

lenient := {"forbidden": [], "required": [], "deny_plaintext_credentials": true, "credential_patterns": []}

verdict(after, p) := result if {
	result := testing.pointers(env_rules.violations(object.union(lenient, p))) with input as testing.create("pod", after)
}

test_allow if {
	verdict({"env": {"A": "plain text", "B": "https://example.com:8080/x"}}, {}) == set()
	verdict({}, {"max": 0}) == set()
	verdict({"env": {"TEAM": "x"}}, {"required": ["TEAM"], "max": 1}) == set()
}

test_deny_forbidden if {
	verdict({"env": {"AWS_KEY": "x", "a/b~": "y", "OK": "z"}}, {"forbidden": ["AWS_*", "a/b~"]}) == {"/env/AWS_KEY", "/env/a~1b~0"}
}

test_deny_forbidden_in_any_case if {
	after := {"env": {"aws_key": "x", "Aws_Key": "y", "AWS_KEY": "z", "OK": "z"}}
	verdict(after, {"forbidden": ["AWS_*"]}) == {"/env/aws_key", "/env/Aws_Key", "/env/AWS_KEY"}
	verdict(after, {"forbidden": ["aws_*"], "case_sensitive": false}) == {"/env/aws_key", "/env/Aws_Key", "/env/AWS_KEY"}
	verdict(after, {"forbidden": ["AWS_*"], "case_sensitive": true}) == {"/env/AWS_KEY"}
}

test_deny_missing if {
	verdict({"env": {}}, {"required": ["TEAM"]}) == {"/env"}
	verdict({}, {"required": ["TEAM"]}) == {"/env"}
}

test_deny_credentials if {
	every text in [
		"AKIAABCDEFGHIJKLMNOP",
		"ghp_abcdefghijklmnopqrstuvwxyz0123456789",
		"hf_abcdefghijklmnopqrstuvwxyz0123",
		"-----BEGIN RSA PRIVATE KEY-----",
		"postgres://user:pass@db/x",
		"sk-abcdefghijklmnopqrstuvwx",
	] {
		verdict({"env": {"A": text}}, {}) == {"/env/A"}
		verdict({"env": {"A": text}}, {"deny_plaintext_credentials": false}) == set()
	}
	verdict({"env": {"A": "corp-1234"}}, {"credential_patterns": ["^corp-[0-9]+$"]}) == {"/env/A"}
}

# Wherever the string is.
test_deny_credentials_elsewhere if {
	text := "AKIAABCDEFGHIJKLMNOP"
	verdict({"name": text}, {}) == {"/name"}
	verdict({"image": text, "args": text}, {}) == {"/image", "/args"}
	verdict({"cmd": ["a", text], "ports": [text]}, {}) == {"/cmd/1", "/ports/0"}
	verdict({"mounts": {"persistent": {"path": text}}}, {}) == {"/mounts/persistent/path"}
	verdict({"mounts": {"network": [{"path": text}]}}, {}) == {"/mounts/network/0/path"}
	verdict({"env": {text: "x"}}, {}) == {"/env"}
	verdict({"env": {"A": {"B": [text]}}}, {}) == {"/env/A/B/0"}
}

test_allow_the_password_of_a_registry if {
	after := {"name": "r", "username": "u", "password": "ghp_abcdefghijklmnopqrstuvwxyz0123456789"}
	env_rules.violations(lenient) == set() with input as testing.create("registry", after)
	testing.pointers(env_rules.violations(lenient)) == {"/username"} with input as testing.create(
		"registry",
		{"username": "AKIAABCDEFGHIJKLMNOP", "password": "x"},
	)
}

test_deny_never_shows_the_value if {
	every message in testing.messages(env_rules.violations(lenient)) {
		not contains(message, "AKIA")
	} with input as testing.create("pod", {"env": {"A": "AKIAABCDEFGHIJKLMNOP"}})
}

# referring: the pointers of the verdict on a pod with placeholders for secrets, each a pointer and a name.
referring(placeholders, p) := result if {
	secrets := [{"name": name, "pointer": pointer} | some [pointer, name] in placeholders]
	result := testing.pointers(env_rules.violations(object.union(lenient, p))) with input as testing.create("pod", {})
		with input.resource.secrets as secrets
}

test_allow_assigned_secrets if {
	referring([["/env/A", "hf"]], {}) == set()
	referring([["/env/A", "hf"]], {"secrets": ["hf"]}) == set()
}

test_deny_unassigned_secrets if {
	p := {"secrets": ["hf"]}
	referring([["/env/A", "other"], ["/env/B", "hf"]], p) == {"/env/A"}
	referring([["/env/A", "HF"]], p) == {"/env/A"}
	referring([["/args", ""]], p) == {"/args"}
	referring([["/env/A", "hf"]], {"secrets": []}) == {"/env/A"}
}

# writing: the verdict on a change of a secret.
writing(verb, p) := result if {
	result := testing.pointers(env_rules.violations(object.union(lenient, p))) with input as testing.settled("secret", verb, {"name": "hf"})
}

test_changes_of_secrets if {
	every verb in ["create", "update"] {
		writing(verb, {}) == set()
		writing(verb, {"secrets": ["hf"]}) == set()
		writing(verb, {"secrets": ["other"]}) == {"/name"}
	}
}

test_deny_secrets_in_names if {
	verdict({"env": {"{{ ACME_SECRET_b }}": "x"}}, {}) == {"/env/{{ ACME_SECRET_b }}"}
	verdict({"env": {"A_{{secrets.hf": "x", "B": "{{ ACME_SECRET_hf }}"}}, {"secrets": ["hf"]}) == {"/env/A_{{secrets.hf"}
}

test_deny_too_many if verdict({"env": {"A": "1", "B": "2"}}, {"max": 1}) == {"/env"}

test_sandboxes if {
	p := object.union(lenient, {"required": ["TEAM"], "forbidden": ["AWS_*"], "secrets": ["hf"]})
	testing.pointers(env_rules.violations(p)) == {"/env"} with input as testing.create("sandbox", {})
	testing.pointers(env_rules.violations(p)) == {"/env/A", "/env/AWS_KEY", "/labels/x"} with input as testing.create("sandbox", {
		"env": {"TEAM": "x", "A": "{{ ACME_SECRET_b }}", "AWS_KEY": "x"},
		"labels": {"x": "AKIAABCDEFGHIJKLMNOP"},
	})
		with input.resource.secrets as [{"name": "b", "pointer": "/env/A"}]
	env_rules.violations(p) == set() with input as testing.plain("sandbox", "exec")
}
