# METADATA
# title: Environment rules
# description: >-
#   Keeps names out of the environment, credentials out of plain text wherever
#   a body has any (but for the password of a registry), and account secrets with
#   those they are assigned to and out of the names of variables. Values never
#   appear in a message.
# custom:
#   params:
#     forbidden:
#       description: Names that may not be set; * stands for any characters.
#       type: array
#       items: {type: string, minLength: 1, format: variable}
#       default: []
#     case_sensitive:
#       description: >-
#         Whether upper and lower case differ in forbidden. If not, AWS_* forbids aws_key, too.
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
#       description: More patterns (RE2) of values to refuse.
#       type: array
#       items: {type: string, format: regex}
#       default: []
#     secrets:
#       description: >-
#         Account secrets the caller may refer to, by name. Absent: any.
#       type: array
#       items: {type: string, minLength: 1}
#     max:
#       description: Most variables.
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

# env: the variables after the call, template included.
env := input.resource.after.env

at(name) := concat("", ["/env/", pointer.escape(name)])

forbidden(params) := {{"message": message, "pointer": at(name)} |
	input.request.settles
	count(params.forbidden) > 0
	some name, _ in env
	some pattern in params.forbidden
	forbids(params, pattern, name)
	message := sprintf("the variable %s may not be set", [name])
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
	message := sprintf("%s holds what looks like a credential: refer to a secret instead", [called(where)])
} | {{"message": message, "pointer": "/env"} |
	input.request.settles
	some name, _ in env
	credential(params, name)
	message := "the name of a variable looks like a credential"
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

unassigned(params) := {{"message": message, "pointer": where} |
	input.request.settles
	secrets := params.secrets
	assigned := {name | some name in secrets}
	some text in texts
	some name in secret_names(text)
	not name in assigned
	some where in places(text)
	message := sprintf("the secret %s is not assigned to the caller", [name])
}

# named: a reference in a name, to an assigned secret as well. Names are shown where
# values are hidden.
named := {{"message": "the name of a variable refers to a secret: its value alone may", "pointer": at(name)} |
	input.request.settles
	some name, _ in env
	count(secret_names(name)) > 0
}

# texts: every string of the state after the call. Bodies nest no deeper than a list of
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

# places are the pointers to where a string is.
places(text) := {path(steps) |
	some steps in array.concat(
		array.concat([[a] | parts[a] == text], [[a, b] | parts[a][b] == text]),
		array.concat([[a, b, c] | parts[a][b][c] == text], [[a, b, c, d] | parts[a][b][c][d] == text]),
	)
}

# parts: the state after the call, without the one place made for a credential.
parts := object.remove(input.resource.after, ["password"]) if input.resource.kind == "registry"

parts := input.resource.after if input.resource.kind != "registry"

path(names) := concat("", [step |
	some name in names
	step := concat("", ["/", pointer.escape(sprintf("%v", [name]))])
])

# secret_names are the secrets a string refers to. A reference in braces that
# speaks of a secret in another form counts as a secret of that name, so that
# it is refused rather than passed.
secret_names(text) := {name |
	contains(text, "{{")
	some i, part in split(text, "{{")
	i > 0
	inner := trim_space(split(part, "}}")[0])
	regex.match(`(?i)secret`, inner)
	name := secret_name(inner)
}

secret_name(inner) := regex.split(`^[A-Za-z0-9]+_SECRET_`, inner)[1] if regex.match(`^[A-Za-z0-9]+_SECRET_`, inner)

secret_name(inner) := inner if not regex.match(`^[A-Za-z0-9]+_SECRET_`, inner)

too_many(params) := {{"message": message, "pointer": "/env", "excess": number - limit} |
	input.request.settles
	limit := params.max
	number := count(env)
	number > limit
	message := sprintf("%d variables are more than the %d allowed", [number, limit])
}
