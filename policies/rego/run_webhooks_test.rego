package tollgate.library.run_webhooks_test

import data.tollgate.library.run_webhooks
import data.tollgate.testing

defaults := {"allow_private": false}

verdict(params, url) := result if {
	result := testing.pointers(run_webhooks.violations(params)) with input as testing.job("run", "e1", {"input": {}, "webhook": url})
}

test_allow if {
	every url in [
		"https://hooks.example.com", "https://hooks.example.com:8443/a?b=@c", "https://Hooks.Example.com.", "https://8.8.8.8/",
		"https://[2606:4700::1111]/",
	] {
		verdict(defaults, url) == set()
	}
	verdict({"allow_private": true}, "https://10.0.0.1/") == set()
	verdict({"allow_private": true}, "https://build/") == set()
	verdict({"allow_private": false, "hosts": ["Hooks.example.com"]}, "https://hooks.example.com/x") == set()
	verdict({"allow_private": false, "hosts": ["*.example.com"]}, "https://a.b.example.com") == set()
	run_webhooks.violations(defaults) == set() with input as testing.job("run", "e1", {"input": {}})
	run_webhooks.violations(defaults) == set() with input as testing.plain("job", "read")
}

test_deny if {
	every url in [
		"https://169.254.169.254/latest", "https://127.0.0.1", "https://10.1.2.3:80", "https://172.16.0.1", "https://192.168.1.1",
		"https://100.64.0.1", "https://0.0.0.0", "https://0251.0376.0251.0376", "https://0xa9fea9fe", "https://2852039166",
		"https://169.254.43518", "https://127.1", "https://1.2.3.256", "https://localhost", "https://build", "https://a.localhost.",
		"https://vault.internal", "https://printer.local", "https://[::1]/", "https://[::ffff:169.254.169.254]", "https://[fd00::1]",
		"https://[fe80::1]", "https://[64:ff9b::a9fe:a9fe]", "https://[2002:a9fe:a9fe::1]", "https://[::]", "https://[1:2]",
		"http://hooks.example.com", "https://a@b.example.com", "https://a.example.com\\@b.example.com", "https://", "ftp://x.example", 7, null,
	] {
		verdict(defaults, url) == {"/webhook"}
	}
	verdict({"allow_private": false, "hosts": ["hooks.example.com"]}, "https://evil.example.com") == {"/webhook"}
	verdict({"allow_private": false, "hosts": ["*.example.com"]}, "https://example.com") == {"/webhook"}
	verdict({"allow_private": false, "hosts": ["*.example.com"]}, "https://badexample.com") == {"/webhook"}
	verdict({"allow_private": false, "hosts": ["10.0.0.1"]}, "https://10.0.0.1") == {"/webhook"}
	testing.pointers(run_webhooks.violations(defaults)) == {"/webhookV2"} with input as testing.job("runsync", "e1", {"webhookV2": "https://10.0.0.1"})
}

# stored: what is said of the address of a store.
stored(params, url) := result if {
	result := testing.pointers(run_webhooks.violations(params)) with input as testing.job("run", "e1", {"input": {}, "s3Config": {"endpointUrl": url}})
}

test_allow_stores if {
	every url in ["https://bucket.s3.eu-central-1.amazonaws.com", "https://store.example.com:9000/", ""] {
		stored(defaults, url) == set()
	}
	stored({"allow_private": true}, "https://minio:9000") == set()
	stored({"allow_private": false, "hosts": ["hooks.example.com", "*.s3.example.com"]}, "https://a.s3.example.com") == set()
	run_webhooks.violations(defaults) == set() with input as testing.job("run", "e1", {"input": {}, "s3Config": {"bucketName": "b"}})
}

test_deny_stores if {
	every url in [
		"http://store.example.com", "https://169.254.169.254/latest", "http://169.254.169.254", "https://minio:9000", "https://10.0.0.1",
		"store.example.com", "https://a@store.example.com", 7, null, {},
	] {
		stored(defaults, url) == {"/s3Config/endpointUrl"}
	}
	stored({"allow_private": false, "hosts": ["hooks.example.com"]}, "https://store.example.com") == {"/s3Config/endpointUrl"}
	testing.messages(run_webhooks.violations({"allow_private": false, "hosts": ["a.example.com"]})) == {
		"webhooks must not use the private host 10.0.0.1",
		`stores must not use the host b.example.com (allowed: "a.example.com")`,
	} with input as testing.job("run", "e1", {"webhook": "https://10.0.0.1", "s3Config": {"endpointUrl": "https://b.example.com"}})
}
