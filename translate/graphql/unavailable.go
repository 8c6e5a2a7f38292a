package graphql

import (
	"context"

	"github.com/tollgate-dev/tollgate/translate/graphql/engine"
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
	return func(context.Context, *exchange, any, engine.Input) (any, error) { return nil, unsupported(name) }
}

// retired returns why a root field is not available any more, nil for others.
func retired(f engine.RootField) error {
	if _, ok := withoutV2(f.Name); ok {
		return unsupported(f.Name)
	}
	if f.Name == "myself" && f.Selects(withoutV2Mine) {
		return unsupported("myself." + withoutV2Mine)
	}
	return nil
}
