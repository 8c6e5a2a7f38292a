# METADATA
# title: Environment rules
# description: >-
#   Restricts environment variables. Refuses forbidden names, account secrets that the
#   caller may not use, references to secrets in names of variables, and credentials in plain text
#   anywhere in a body except the password of a registry. Messages never contain values.
# custom:
#   params:
#     forbidden:
#       description: Names that must not be set; * matches any characters.
#       type: array
#       items: {type: string, minLength: 1, format: variable}
#       default: []
#     case_sensitive:
#       description: Match forbidden case-sensitively. If false, AWS_* also forbids aws_key.
#       type: boolean
#       default: false
#     required:
#       description: Names that must be set.
#       type: array
#       items: {type: string, minLength: 1, format: variable}
#       default: []
#     deny_plaintext_credentials:
#       description: Refuse values that look like a key, a token or a private key.
#       type: boolean
#       default: true
#     credential_patterns:
#       description: Additional patterns (RE2) of values to refuse.
#       type: array
#       items: {type: string, format: regex}
#       default: []
#     secrets:
#       description: Account secrets that the caller may refer to, create and change; default any.
#       type: array
#       items: {type: string, minLength: 1}
#     max:
#       description: Maximum number of variables.
#       type: integer
#       minimum: 0
#   doubt: {apart: {required: forbidden}}
#   allow_lists: [secrets]
#   example:
#     forbidden: [AWS_*, PUBLIC_KEY]
#     secrets: [hf_token]
package tollgate.library.env_rules

import data.tollgate.pointer

violations(params) := (forbidden(params) | missing(params)) | (plaintext(params) | ((unassigned(params) | named) | too_many(params)))

# env: the resulting variables, including those of the template.
env := input.resource.after.env

at(name) := concat("", ["/env/", pointer.escape(name)])

forbidden(params) := {{"message": message, "pointer": at(name)} |
	input.request.settles
	count(params.forbidden) > 0
	some name, _ in env
	some pattern in params.forbidden
	forbids(params, pattern, name)
	message := sprintf("the variable %s must not be set", [name])
}

forbids(_, pattern, name) if glob.match(pattern, null, name)

forbids(params, pattern, name) if {
	not params.case_sensitive
	glob.match(lower(pattern), null, lower(name))
}

missing(params) := {{"message": message, "pointer": "/env"} |
	input.request.verb in {"create", "update"}
	input.resource.kind in {"pod", "endpoint", "cluster", "sandbox"}
	some name in params.required
	not env[name]
	message := sprintf("the variable %s must be set", [name])
}

plaintext(params) := {{"message": message, "pointer": where} |
	input.request.settles
	some text in texts
	credential(params, text)
	some where in places(text)
	message := sprintf("%s appears to contain a credential: use a secret instead", [called(where)])
} | {{"message": message, "pointer": "/env"} |
	input.request.settles
	some name, _ in env
	credential(params, name)
	message := "the name of a variable appears to contain a credential"
}

called(where) := sprintf("the variable %s", [name]) if {
	some name, _ in env
	where == at(name)
}

called(where) := sprintf("the field %s", [where]) if not where in {at(name) | some name, _ in env}

credential(params, text) if {
	params.deny_plaintext_credentials
	regex.match(known_pattern, text)
}

credential(params, text) if {
	some pattern in params.credential_patterns
	regex.match(pattern, text)
}

known_pattern := concat("|", [
	`-----BEGIN [A-Z ]*PRIVATE KEY-----`,
	`\b(AKIA|ASIA)[0-9A-Z]{16}\b`,
	`\bgh[pousr]_[A-Za-z0-9]{36,}`,
	`\bgithub_pat_[A-Za-z0-9_]{22,}`,
	`\bglpat-[A-Za-z0-9_-]{20,}`,
	`\bhf_[A-Za-z0-9]{30,}`,
	`\bsk-[A-Za-z0-9_-]{20,}`,
	`\bxox[abprs]-[A-Za-z0-9-]{10,}`,
	`\bAIza[0-9A-Za-z_-]{35}`,
	`\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.`,
	`[a-z][a-z0-9+.-]*://[^/\s:@]+:[^/\s:@]+@`,
])

unassigned(params) := {{"message": message, "pointer": secret.pointer} |
	input.request.settles
	secrets := params.secrets
	assigned := {name | some name in secrets}
	some secret in subjects
	not secret.name in assigned
	message := assignment(secret.name)
}

# subjects: the secrets the call is about: those named by its placeholders, and the one it creates or
# changes. The name is empty if a placeholder cannot be parsed.
subjects contains secret if some secret in input.resource.secrets

subjects contains {"name": input.resource.after.name, "pointer": "/name"} if input.resource.kind == "secret"

assignment(name) := sprintf("the secret %s is not assigned to the caller", [name]) if name != ""

assignment("") := "the placeholder may refer to a secret that is not assigned to the caller"

# named: a reference in the name of a variable, even to an assigned secret. Names are shown where
# values are hidden.
named := {{"message": "the name of a variable must not refer to a secret", "pointer": at(name)} |
	input.request.settles
	some name, _ in env
	regex.match(`(?i)\{\{[^{}]*secret`, name)
}

# texts: every string in the resulting state. Bodies are not nested more deeply than a list of
# objects in an object.
texts := {text |
	some depth in [first, second, third, fourth]
	some text in depth
	is_string(text)
}

first := [x | some x in parts]

second := [x | some outer in first; some x in outer]

third := [x | some outer in second; some x in outer]

fourth := [x | some outer in third; some x in outer]

# places: the pointers at which a string occurs.
places(text) := {path(steps) |
	some steps in array.concat(
		array.concat([[a] | parts[a] == text], [[a, b] | parts[a][b] == text]),
		array.concat([[a, b, c] | parts[a][b][c] == text], [[a, b, c, d] | parts[a][b][c][d] == text]),
	)
}

# parts: the resulting state, without the one member intended for a credential.
parts := object.remove(input.resource.after, ["password"]) if input.resource.kind == "registry"

parts := input.resource.after if input.resource.kind != "registry"

path(names) := concat("", [step |
	some name in names
	step := concat("", ["/", pointer.escape(sprintf("%v", [name]))])
])

too_many(params) := {{"message": message, "pointer": "/env", "excess": number - limit} |
	input.request.settles
	limit := params.max
	number := count(env)
	number > limit
	message := sprintf("%d variables exceed the limit of %d", [number, limit])
}
