# METADATA
# title: Run interface - addresses
# description: >-
#   Which hosts a job may have called - by its webhooks, and by s3Config, the store
#   that the worker leaves its output in. In force with its defaults wherever the
#   run interface is served: what is no https address is refused, and so are
#   addresses of private, local and reserved networks, and names that only such
#   networks resolve. A public name can still lead to a private address, which only
#   a list of hosts rules out. What input and messages say is the worker's own and not
#   looked at.
# custom:
#   params:
#     hosts:
#       description: Hosts that jobs may name; *.example.com stands for every name below example.com. Absent - any that is not private.
#       type: array
#       items: {type: string, minLength: 1}
#     allow_private:
#       description: Whether they may name private hosts.
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

# Without an address, the store is one that the worker knows.
named contains ["/s3Config/endpointUrl", "stores", url] if {
	url := input.request.body.s3Config.endpointUrl
	url != ""
}

fault(_, subject, url) := sprintf("%s must have an https address with a host and no user", [subject]) if not host(url)

fault(params, subject, url) := sprintf("%s may not name the private host %s", [subject, host(url)]) if {
	private(host(url))
	not params.allow_private
}

fault(params, subject, url) := sprintf("%s may not name the host %s (allowed: %s)", [subject, name, value.listed(params.hosts)]) if {
	name := host(url)
	not reserved(params, name)
	params.hosts
	not listed(params.hosts, name)
}

reserved(params, name) if {
	private(name)
	not params.allow_private
}

# host is the host of an address without brackets, port and final dot.
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

# private: names without a dot, and those of networks of one's own.
private(name) if not contains_any(name)

private(name) if strings.any_suffix_match(name, {
	".localhost", ".local", ".localdomain", ".internal", ".intranet", ".private", ".corp", ".home", ".lan", ".arpa", ".test",
	".invalid", ".onion",
})

# What looks like an address is private unless it is plainly a public one: other
# parsers read 0251.0376.1, 0xa9fea9fe and 2852039166 as addresses, too.
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
