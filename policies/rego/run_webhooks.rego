# METADATA
# title: Run interface - addresses
# description: >-
#   Restricts the hosts in a job's webhooks and in its s3Config, where the worker
#   stores its output. Addresses that do not use https, addresses in private, local and reserved
#   networks, and names that resolve only in such networks are refused. Only a list of hosts
#   excludes public names that resolve to private addresses. The input and messages of a job are not
#   checked. The policy is always enabled if the run interface is served.
# custom:
#   params:
#     hosts:
#       description: >-
#         Allowed hosts, with *.example.com for every name below example.com; default all hosts that
#         are not private.
#       type: array
#       items: {type: string, minLength: 1}
#     allow_private:
#       description: Allow private hosts.
#       type: boolean
#       default: false
#   example:
#     hosts: [hooks.example.com, "*.jobs.example.com", "*.s3.eu-central-1.amazonaws.com"]
package tollgate.library.run_webhooks

import data.tollgate.value

violations(params) := {{"message": message, "pointer": pointer} |
	input.request.verb == "run"
	some [pointer, subject, url] in named
	message := fault(params, subject, url)
}

named contains ["/webhook", "webhooks", input.request.body.webhook]

named contains ["/webhookV2", "webhooks", input.request.body.webhookV2]

# Without a URL, the worker uses a store that it knows.
named contains ["/s3Config/endpointUrl", "stores", url] if {
	url := input.request.body.s3Config.endpointUrl
	url != ""
}

fault(_, subject, url) := sprintf("%s must have an https URL with a host and without a user", [subject]) if not host(url)

fault(params, subject, url) := sprintf("%s must not use the private host %s", [subject, host(url)]) if {
	private(host(url))
	not params.allow_private
}

fault(params, subject, url) := sprintf("%s must not use the host %s (allowed: %s)", [subject, name, value.listed(params.hosts)]) if {
	name := host(url)
	not reserved(params, name)
	params.hosts
	not listed(params.hosts, name)
}

reserved(params, name) if {
	private(name)
	not params.allow_private
}

# host: the host of a URL without brackets, port and trailing dot.
host(url) := lower(trim_suffix(split(authority(url), ":")[0], ".")) if not startswith(authority(url), "[")

host(url) := lower(split(trim_prefix(authority(url), "["), "]")[0]) if startswith(authority(url), "[")

authority(url) := split(split(trim_prefix(url, "https://"), "/")[0], "?")[0] if {
	is_string(url)
	regex.match(`^https://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?([/?][!-\[\]-~]*)?$`, url)
}

listed(hosts, name) if name in {lower(h) | some h in hosts}

listed(hosts, name) if {
	some h in hosts
	startswith(h, "*.")
	endswith(name, lower(trim_prefix(h, "*")))
}

# private: names without a dot, and names of private networks.
private(name) if not contains_any(name)

private(name) if strings.any_suffix_match(name, {
	".localhost", ".local", ".localdomain", ".internal", ".intranet", ".private", ".corp", ".home", ".lan", ".arpa", ".test",
	".invalid", ".onion",
})

# Hosts that resemble an address are private unless they are clearly a public one: some parsers also
# accept 0251.0376.1, 0xa9fea9fe and 2852039166 as addresses.
private(name) if {
	numeric(name)
	not public4(name)
}

private(name) if {
	contains(name, ":")
	not public6(name)
}

contains_any(name) if contains(name, ".")

contains_any(name) if contains(name, ":")

numeric(name) if {
	labels := split(name, ".")
	regex.match(`^(0x[0-9a-f]*|[0-9]+)$`, labels[count(labels) - 1])
}

public4(name) if {
	regex.match(`^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])$`, name)
	every network in networks4 {
		not net.cidr_contains(network, name)
	}
}

public6(name) if {
	net.cidr_is_valid(concat("/", [name, "128"]))
	net.cidr_contains("2000::/3", name)
	every network in networks6 {
		not net.cidr_contains(network, name)
	}
}

# The special-purpose registries of RFC 6890 and its successors.
networks4 := [
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
]

networks6 := ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"]
