package graphql

import (
	"context"

	"github.com/tollgate-dev/tollgate/translate/graphql/engine"
)

// unsupportedReason returns the message for a root field that legacy clients use but v2 does not support. Such a field is not emulated. An
// on-demand pod in place of a spot pod would cost more than agreed, and a recreated registry credential would have another id than the id
// that pods refer to.
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

// public reports whether a root field needs no credential. Queries for the hub are public: v2 does not have the hub, and a refusal is not
// confidential.
func public(root string) bool {
	switch root {
	case "__typename", "__schema", "__type", "listings", "listing", "listingFromRepo", "allAiApiPublicConfigs":
		return true
	}
	return rootFields()[root].public
}

// unsupportedMyselfField is the field of myself that v2 does not support.
const unsupportedMyselfField = "flashApps"

func unsupported(reason string) *fault { return newFault(reason, codeNotSupported, 0) }

// rejected returns a resolver for a schema field without a v2 equivalent.
func rejected(reason string) resolver {
	return func(context.Context, *exchange, any, engine.Input) (any, error) { return nil, unsupported(reason) }
}

// removedReason returns an error for a root field that is no longer available, or nil.
func removedReason(f engine.RootField) error {
	if reason, gone := unsupportedReason(f.Name); gone {
		return unsupported(reason)
	}
	if f.Name == "myself" && f.Selects(unsupportedMyselfField) {
		return unsupported("myself." + unsupportedMyselfField + " is not available")
	}
	return nil
}
