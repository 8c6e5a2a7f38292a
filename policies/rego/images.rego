# METADATA
# title: Image registries and digests
# description: >-
#   Restricts the registries or repositories of container images, and can require a digest. Invalid
#   image references are refused.
# custom:
#   params:
#     allow:
#       description: >-
#         Registries (ghcr.io), organisations (ghcr.io/acme) or repositories (ghcr.io/acme/train);
#         default any. Docker Hub, also for images without a registry, is docker.io. Its official
#         images are in docker.io/library. For images of endpoint builds, allow the host of the
#         platform's registry, or the path before the endpoint's name in the imageName of a build.
#       type: array
#       items: {type: string, minLength: 1, format: repository}
#       default: []
#     deny_latest:
#       description: Refuse the tag latest, and images with neither tag nor digest.
#       type: boolean
#       default: true
#     require_digest:
#       description: Refuse images without a digest.
#       type: boolean
#       default: false
#   allow_lists: [allow]
#   example:
#     allow: [ghcr.io/acme, docker.io/library]
#     require_digest: true
package tollgate.library.images

import data.tollgate.value

violations(params) := {{"message": message, "pointer": pointer} |
	input.request.settles
	some [pointer, image] in named
	some message in faults(image, params)
}

# named: the resulting image, from the member of its kind.
named contains ["/image", input.resource.after.image]

named contains ["/imageName", input.resource.after.imageName]

faults(image, _) := {"the image is not a well-formed reference"} if not well_formed(image)

faults(image, params) := (registry_faults(image, params) | tag_faults(image, params)) | digest_faults(image, params) if {
	well_formed(image)
}

well_formed(image) if {
	is_string(image)
	count(image) <= 512
	regex.match(reference, image)
}

# reference: registry and path, tag, and digest in the grammar of the distribution project.
reference := `^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?/)?[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$`

registry_faults(image, params) := {message |
	count(params.allow) > 0
	repository := repository_of(image)
	not from_listed(params.allow, repository)
	message := sprintf("the image %s is not from an allowed registry (allowed: %s)", [repository, value.listed(params.allow)])
}

from_listed(allow, repository) if {
	some entry in allow
	prefix := trim_suffix(entry, "/")
	startswith(concat("", [repository, "/"]), concat("", [prefix, "/"]))
}

tag_faults(image, params) := {"the tag latest is not allowed: use a version" |
	params.deny_latest
	not contains(image, "@")
	tag_of(image) == "latest"
}

digest_faults(image, params) := {"the image must be pinned by a digest (@sha256:...)" |
	params.require_digest
	not contains(image, "@")
}

# name: the reference without its digest.
name_of(image) := split(image, "@")[0]

# last: the last part of the name, with its tag.
last_of(image) := parts[count(parts) - 1] if parts := split(name_of(image), "/")

tag_of(image) := split(last_of(image), ":")[1] if contains(last_of(image), ":")

tag_of(image) := "latest" if not contains(last_of(image), ":")

# repository: the name without tag and with an explicit registry.
repository_of(image) := concat("/", [lower(first), official(lower(first), rest)]) if {
	[first, rest] := split_registry(untagged(image))
}

# official: the path of a repository, with library/ for the official images of Docker Hub.
official("docker.io", path) := concat("/", ["library", path]) if not contains(path, "/")

official(host, path) := path if host != "docker.io"

official(_, path) := path if contains(path, "/")

untagged(image) := trim_suffix(name_of(image), concat("", [":", split(last_of(image), ":")[1]])) if {
	contains(last_of(image), ":")
}

untagged(image) := name_of(image) if not contains(last_of(image), ":")

split_registry(name) := [first, concat("/", array.slice(parts, 1, count(parts)))] if {
	parts := split(name, "/")
	count(parts) > 1
	first := hub_alias(parts[0])
	names_host(parts[0])
}

split_registry(name) := ["docker.io", name] if {
	parts := split(name, "/")
	count(parts) > 1
	not names_host(parts[0])
}

split_registry(name) := ["docker.io", name] if not contains(name, "/")

names_host(part) if contains(part, ".")

names_host(part) if contains(part, ":")

names_host("localhost")

hub_alias(host) := "docker.io" if lower(host) in {"index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"}

hub_alias(host) := host if not lower(host) in {"index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"}
