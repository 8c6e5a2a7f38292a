package tollgate.library.roles_test

import data.tollgate.library.roles
import data.tollgate.testing

verdict(params, given, kind, verb) := result if {
	result := count(roles.violations(params)) with input as object.union(
		testing.plain(kind, verb),
		{"caller": {"roles": given}},
	)
}

test_allow_by_default if {
	verdict({}, ["viewer"], "pod", "read") == 0
	verdict({}, ["operator"], "pod", "delete") == 0
	verdict({}, ["operator"], "endpoint", "logs") == 0
	every kind in ["template", "network_volume", "registry"] {
		every verb in ["create", "update", "delete"] {
			verdict({}, ["operator"], kind, verb) == 0
		}
	}
	verdict({}, ["operator"], "sandbox", "exec") == 0
	verdict({}, ["viewer", "admin"], "account", "update") == 0
}

test_deny_by_default if {
	verdict({}, ["viewer"], "pod", "logs") == 1
	verdict({}, ["viewer"], "pod", "create") == 1
	verdict({}, ["viewer"], "sandbox", "exec") == 1
	verdict({}, ["operator"], "account", "update") == 1
	verdict({}, ["operator"], "delegation", "create") == 1
	verdict({}, ["viewer"], "template", "create") == 1
	verdict({}, ["intern"], "pod", "read") == 1
	verdict({}, [], "pod", "read") == 1
}

test_grants if {
	grants := {"grants": {"intern": ["pod:read", "*:logs"], "lead": ["pod:*"]}}
	verdict(grants, ["intern"], "pod", "read") == 0
	verdict(grants, ["intern"], "endpoint", "logs") == 0
	verdict(grants, ["lead"], "pod", "delete") == 0
	verdict(grants, ["intern"], "endpoint", "read") == 1
	verdict(grants, ["admin"], "pod", "read") == 1
}
