package graphql

import (
	"context"

	"github.com/vektah/gqlparser/v2/ast"
)

// withoutV2 tells the root fields legacy clients send for which v2 has nothing,
// with the words that say so. They are not emulated: a spot pod as an on-demand
// one would cost more than agreed, and a registry credential made anew has
// another id than the one pods hold.
func withoutV2(root string) (reason string, ok bool) {
	switch root {
	case "podRentInterruptable", "podBidResume":
		return textNoSpot, true
	case "updateRegistryAuth":
		return "updating registry credentials is not available, create a new one", true
	case "secretCreate", "secretDelete",
		"addModelToRepo", "removeModelFromRepo", "createModelRepoUpload", "completeModelRepoUpload",
		"updateModelVersionStatus", "myModels", "myModel",
		"listings", "listing", "listingFromRepo", "allAiApiPublicConfigs",
		"createFlashApp", "deleteFlashApp", "createFlashEnvironment", "deleteFlashEnvironment",
		"flashApp", "flashAppByName", "flashEnvironment", "flashEnvironmentByName", "flashBuild",
		"prepareFlashArtifactUpload", "finalizeFlashArtifactUpload", "updateFlashBuildManifest",
		"deployBuildToEnvironment", "createFlashAuthRequest", "flashAuthRequestStatus":
		return root + " is not available", true
	}
	return "", false
}

// withoutV2Mine is the field below myself that v2 has nothing for.
const withoutV2Mine = "flashApps"

func unsupported(name string) *fault {
	reason, ok := withoutV2(name)
	if !ok {
		reason = name + " is not available"
	}
	return &fault{message: reason, code: codeNotSupported}
}

// rejectUnsupported is the resolver of the fields of the schema that have no v2
// equivalent.
func rejectUnsupported(name string) resolver {
	return func(context.Context, *exchange, any, input) (any, error) { return nil, unsupported(name) }
}

// unavailable returns an operation of refusals when every root field is one v2
// has nothing for, else nil. It comes before validation, which would complain
// about the types of such fields and hide the reason.
func unavailable(doc *ast.QueryDocument, def *ast.OperationDefinition) *operation {
	op := &operation{name: def.Name, kind: def.Operation}
	seen := map[string]bool{}
	all := true
	rootFields(doc, def.SelectionSet, func(s *ast.Field) {
		name := s.Name
		if _, ok := withoutV2(name); !ok {
			if name != "myself" || !selectsMine(doc, s) {
				all = false
				return
			}
			name = "myself." + withoutV2Mine
		}
		key := orElse(s.Alias, s.Name)
		if seen[key] {
			return
		}
		seen[key] = true
		op.roots = append(op.roots, &node{
			key: key, name: s.Name, typ: ast.NamedType("Void", nil), resolve: rejectUnsupported(name),
		})
	})
	if !all || len(op.roots) == 0 || def.Operation == ast.Subscription {
		return nil
	}
	return op
}

func selectsMine(doc *ast.QueryDocument, s *ast.Field) (found bool) {
	rootFields(doc, s.SelectionSet, func(s *ast.Field) { found = found || s.Name == withoutV2Mine })
	return found
}
