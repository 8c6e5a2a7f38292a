package tollgate.library.ports_test

import data.tollgate.library.ports
import data.tollgate.testing

params := {"allow": ["http", "6000/tcp"], "deny": ["8080/http"], "max": 2}

verdict(given, p) := result if {
	result := testing.pointers(ports.violations(p)) with input as testing.create("pod", {"ports": given})
}

test_allow if {
	verdict(["80/http", "6000/tcp"], params) == set()
	verdict([], params) == set()
	verdict(["22/tcp"], {"deny": []}) == set()
	ports.violations(params) == set() with input as testing.create("pod", {})
}

test_deny_unlisted if verdict(["22/tcp"], params) == {"/ports/0"}

test_deny_listed if {
	verdict(["80/http", "8080/http"], params) == {"/ports/1"}
	verdict(["08080/http"], params) == {"/ports/0"}
	verdict(["0/tcp"], {"deny": ["00/tcp"]}) == {"/ports/0"}
	verdict(["9/tcp"], {"deny": ["tcp"]}) == {"/ports/0"}
}

test_deny_too_many if verdict(["80/http", "81/http", "82/http"], params) == {"/ports"}

test_deny_malformed if verdict(["80", "80/udp", 80, "80/http "], {"deny": []}) == {"/ports/0", "/ports/1", "/ports/2", "/ports/3"}
