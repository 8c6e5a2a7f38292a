package tollgate.library.images_test

import data.tollgate.library.images
import data.tollgate.testing

digest := "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

params := {"allow": ["ghcr.io/acme", "docker.io/library/", "registry.acme.example:5000"], "deny_latest": true, "require_digest": false}

count_of(image, p) := result if {
	result := count(images.violations(p)) with input as testing.create("pod", {"image": image})
}

test_allow if {
	every image in [
		"ghcr.io/acme/train:1",
		"ghcr.io/acme:1",
		"GHCR.io/acme/a/b:1",
		"ubuntu:22.04",
		"docker.io/library/ubuntu:22.04",
		"index.docker.io/library/ubuntu:22.04",
		"docker.io/ubuntu:22.04",
		"registry-1.docker.io/ubuntu:22.04",
		"registry.acme.example:5000/x:1",
		concat("", ["ghcr.io/acme/train", digest]),
		concat("", ["ghcr.io/acme/train:latest", digest]),
	] {
		count_of(image, params) == 0
	}
}

test_allow_any_registry if count_of("quay.io/x/y:1", {"allow": [], "deny_latest": true, "require_digest": false}) == 0

test_allow_no_image if count(images.violations(params)) == 0 with input as testing.create("network_volume", {"size": 10})

test_allow_localhost if {
	count_of("localhost/x:1", {"allow": ["localhost"], "deny_latest": true, "require_digest": false}) == 0
}

test_deny_registry if {
	every image in ["ghcr.io/acmeevil/train:1", "ghcr.io/other/acme:1", "acme/train:1", "evil.example/library/ubuntu:1", "evil.example/ubuntu:1", "docker.io/acme/ubuntu:1"] {
		count_of(image, params) == 1
	}
}

test_deny_latest if {
	every image in ["ghcr.io/acme/train", "ghcr.io/acme/train:latest", "registry.acme.example:5000/x"] {
		count_of(image, params) == 1
	}
}

test_deny_without_digest if count_of("ubuntu:22.04", {"allow": [], "deny_latest": true, "require_digest": true}) == 1

test_deny_malformed if {
	every image in ["", "ghcr.io/acme/../evil:1", "ghcr.io/acme/x:1@sha256:00", "UPPER/x:1", "x y", "a//b", 7, null, {}] {
		count_of(image, params) == 1
	}
}

test_sandboxes if {
	p := {"allow": ["ghcr.io/acme"], "deny_latest": true, "require_digest": false}
	images.violations(p) == set() with input as testing.create("sandbox", {"imageName": "ghcr.io/acme/a:1"})
	testing.pointers(images.violations(p)) == {"/imageName"} with input as testing.create("sandbox", {"imageName": "ubuntu:22.04"})
	testing.pointers(images.violations(p)) == {"/imageName"} with input as testing.create("sandbox", {"imageName": null})
}
