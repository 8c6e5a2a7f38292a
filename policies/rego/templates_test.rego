package tollgate.library.templates_test

import data.tollgate.library.templates
import data.tollgate.testing

strict := {"allow_own": true, "allow_public": false, "allow": ["listed"], "allow_publishing": false}

verdict(params, id, template) := result if {
	result := testing.pointers(templates.violations(params)) with input as object.union(
		testing.create("pod", {"templateId": id}),
		{"resource": {"template": template}},
	)
}

test_allow if {
	verdict(strict, "mine", {"own": true, "public": false}) == set()
	verdict(strict, "listed", {"own": false, "public": true}) == set()
	verdict(object.union(strict, {"allow_public": true}), "theirs", {"own": false, "public": true}) == set()
	templates.violations(strict) == set() with input as testing.create("pod", {})
	templates.violations(strict) == set() with input as testing.create("template", {"public": false})
	templates.violations(object.union(strict, {"allow_publishing": true})) == set() with input as testing.create("template", {"public": true})
}

test_deny if {
	verdict(strict, "theirs", {"own": false, "public": true}) == {"/templateId"}
	verdict(object.union(strict, {"allow_own": false}), "mine", {"own": true, "public": false}) == {"/templateId"}
	testing.pointers(templates.violations(strict)) == {"/templateId"} with input as testing.create("pod", {"templateId": "unread"})
	testing.pointers(templates.violations(strict)) == {"/public"} with input as testing.update("template", {"public": true})
}
