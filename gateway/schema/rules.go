package schema

import (
	"encoding/json"
	"math"
	"net/url"
)

// bodyRule is a rule between fields of a body. Rules are applied to bodies that ValidateBody has accepted, but must not panic on other
// bodies.
type bodyRule struct {
	// name is the Keyword of violations of the rule.
	name  string
	check func(body map[string]any, report reporter)
}

// reporter records a violation with its message. tokens is the path to the value.
type reporter func(message string, tokens ...any)

// queryRule is a rule between query parameters.
type queryRule struct {
	name  string
	check func(query url.Values, report func(parameter, message string))
}

// CheckRules checks the rules between the fields of a body that the schema of the operation cannot express. [Operation.ValidateBody] must
// have accepted doc. CheckRules returns at most 50 violations in a fixed order.
//
// Rules that depend on other data (flavor ranges, data centers, template values, the current size of a volume) are checked elsewhere.
func (op *Operation) CheckRules(doc any) []Violation {
	body, ok := doc.(map[string]any)
	if !ok {
		return nil
	}
	var vs []Violation
	var rule string
	report := func(message string, tokens ...any) {
		vs = append(vs, at(statusOf(rule), rule, message, tokens...))
	}
	for _, r := range op.bodyRules {
		rule = r.name
		r.check(body, report)
	}
	return tidy(vs)
}

// bodyRules returns the rules of an operation.
func bodyRules(operation string) []bodyRule {
	container := []bodyRule{
		{"portFormat", checkPorts},
		{"environmentName", checkEnvironment},
		{"identifier", checkIdentifiers},
		{"template", checkTemplate},
	}
	switch operation {
	case "createPod":
		return append(container,
			bodyRule{"oneCompute", exactlyOneOf("gpu", "cpu")},
			bodyRule{"powerOfTwo", checkVCPU},
			bodyRule{"flavorSize", checkFlavorSize},
			bodyRule{"cudaConstraint", checkCUDA},
			bodyRule{"oneMount", checkOneMount},
			bodyRule{"persistentNeedsGpu", checkPersistentWithCPU},
			bodyRule{"networkingNeedsGpu", checkNetworkingWithCPU},
			bodyRule{"bound", checkPodBounds})
	case "updatePod":
		return append(container,
			bodyRule{"oneMount", checkOneMount},
			bodyRule{"mountRemoval", checkMountRemoval},
			bodyRule{"bound", checkPodBounds})
	case "createCluster":
		return append(container,
			bodyRule{"oneMount", checkOneMount},
			bodyRule{"bound", checkClusterBounds})
	case "createEndpoint":
		return append(container,
			bodyRule{"oneCompute", exactlyOneOf("gpu", "cpu")},
			bodyRule{"powerOfTwo", checkVCPU},
			bodyRule{"flavorSize", checkFlavorSize},
			bodyRule{"cudaConstraint", checkCUDA},
			bodyRule{"excludedTwice", checkExcludedTypes},
			bodyRule{"workerRange", workerRange(0, 3)},
			bodyRule{"idleTimeout", checkIdleTimeout},
			bodyRule{"bound", checkEndpointBounds})
	case "updateEndpoint":
		return append(container,
			bodyRule{"oneCompute", checkAtMostOneCompute},
			bodyRule{"powerOfTwo", checkVCPU},
			bodyRule{"flavorSize", checkFlavorSize},
			bodyRule{"cudaConstraint", checkCUDA},
			bodyRule{"excludedTwice", checkExcludedTypes},
			bodyRule{"workerRange", workerRange(math.MinInt64, math.MaxInt64)}, // an omitted member keeps its value
			bodyRule{"bound", checkEndpointBounds})
	case "createTemplate", "updateTemplate":
		return append(container, bodyRule{"bound", checkPodBounds})
	case "updateSshKeys":
		return []bodyRule{{"duplicateKey", checkSSHKeys}}
	case "createSecret", "updateSecret":
		return []bodyRule{{"size", checkSecretSize}}
	case "createSandbox":
		return []bodyRule{
			{"environmentName", checkEnvironment},
			{"identifier", checkIdentifiers},
			{"template", checkTemplate},
			{"oneImage", exactlyOneOf("imageName", "templateId")},
			{"egress", checkEgress},
			{"bound", checkSandboxBounds},
		}
	case "createNetworkVolume":
		return []bodyRule{{"identifier", checkIdentifiers}}
	}
	return nil
}

// The following functions return the zero value if a member is missing or has another type, because the schema has already checked the
// types.

func object(parent map[string]any, name string) map[string]any {
	m, _ := parent[name].(map[string]any)
	return m
}

func list(parent map[string]any, name string) []any {
	items, _ := parent[name].([]any)
	return items
}

func text(parent map[string]any, name string) string {
	s, _ := parent[name].(string)
	return s
}

func has(parent map[string]any, name string) bool {
	_, ok := parent[name]
	return ok
}

// integer returns a member that is an integer.
func integer(parent map[string]any, name string) (int64, bool) {
	n, ok := parent[name].(json.Number)
	if !ok {
		return 0, false
	}
	v, err := n.Int64()
	return v, err == nil
}

// words returns the strings in a list.
func words(items []any) []string {
	out := make([]string, 0, len(items))
	for _, item := range items {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}
