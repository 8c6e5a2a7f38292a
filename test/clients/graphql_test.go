package clients

import "testing"

// A generated client of the GraphQL interface, which selects every field that it knows, the questions of public
// scripts about spending, and the documents of an infrastructure-as-code provider.
func TestGeneratedGraphQLClient(t *testing.T) {
	t.Parallel()
	python := installed(t, "runpod-ariadne-0.1.0/bin/python")
	drive[report](t, newStack(t, standing()), python, "graphql_run.py").check(t, "graphql-0.1.0.json")
}
