package tollgate.library.account_changes_test

import data.tollgate.library.account_changes
import data.tollgate.testing

verdict(params, given, kind, verb) := result if {
	result := account_changes.violations(params) with input as object.union(
		testing.plain(kind, verb),
		{"caller": {"roles": given}},
	)
}

test_allow_admins if {
	every kind in ["account", "delegation"] {
		every verb in ["create", "update", "delete"] {
			count(verdict({}, ["viewer", "admin"], kind, verb)) == 0
		}
	}
}

test_allow_reading_and_what_is_not_the_account if {
	count(verdict({}, [], "account", "read")) == 0
	count(verdict({}, ["viewer"], "delegation", "read")) == 0
	count(verdict({}, ["operator"], "pod", "create")) == 0
	every kind in ["template", "network_volume", "registry"] {
		every verb in ["create", "update", "delete"] {
			count(verdict({}, ["operator"], kind, verb)) == 0
		}
	}
}

test_deny_others if {
	every kind in ["account", "delegation"] {
		every verb in ["create", "update", "delete"] {
			count(verdict({}, ["operator"], kind, verb)) == 1
			count(verdict({}, [], kind, verb)) == 1
		}
	}
	some violation in verdict({}, ["operator"], "account", "update")
	violation.message == "only callers with the role admin can change SSH keys and delegations of the account"
}

test_roles_given if {
	params := {"roles": ["admin", "registrar"]}
	count(verdict(params, ["registrar"], "delegation", "create")) == 0
	some violation in verdict(params, ["operator"], "delegation", "create")
	contains(violation.message, "admin or registrar")
	count(verdict({"roles": []}, ["admin"], "delegation", "create")) == 1
}
