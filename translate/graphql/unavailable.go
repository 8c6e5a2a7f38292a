package graphql

import (
	"context"

	"github.com/tollgate-dev/tollgate/translate/graphql/engine"
)

// unsupportedReason tells the root fields legacy clients send for which v2 has nothing,
// with the words that say so. They are not emulated: a spot pod as an on-demand
// one would cost more than agreed, and a registry credential made anew has
// another id than the one pods hold.
func unsupportedReason(root string) (reason string, ok bool) {
	switch root {
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
	reason = rootFields()[root].unsupported
	return reason, reason != ""
}

// public tells the root fields that need no credential. What clients ask the hub, which v2
// has not, is no secret.
func public(root string) bool {
	switch root {
	case "__typename", "__schema", "__type", "listings", "listing", "listingFromRepo", "allAiApiPublicConfigs":
		return true
	}
	return rootFields()[root].public
}

// unsupportedMyselfField is the field below myself that v2 has nothing for.
const unsupportedMyselfField = "flashApps"

func unsupported(reason string) *fault { return &fault{message: reason, code: codeNotSupported} }

// rejected is the resolver of the fields of the schema that have no v2 equivalent.
func rejected(reason string) resolver {
	return func(context.Context, *exchange, any, engine.Input) (any, error) { return nil, unsupported(reason) }
}

// removedReason returns why a root field is not available any more, nil for others.
func removedReason(f engine.RootField) error {
	if reason, gone := unsupportedReason(f.Name); gone {
		return unsupported(reason)
	}
	if f.Name == "myself" && f.Selects(unsupportedMyselfField) {
		return unsupported("myself." + unsupportedMyselfField + " is not available")
	}
	return nil
}
