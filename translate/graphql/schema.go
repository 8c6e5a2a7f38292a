package graphql

import (
	"context"
	"maps"

	"github.com/tollgate-dev/tollgate/translate/graphql/engine"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// public tells the root fields that need no credential: clients price GPUs
// without one, and ask the hub, which v2 has not. myself is null then.
func public(root string) bool {
	switch root {
	case "gpuTypes", "cpuTypes", "cpuFlavors", "dataCenters", "countryCodes", "serverlessGpuPools", "podTemplates",
		"myself", "__typename", "__schema", "__type",
		"listings", "listing", "listingFromRepo", "allAiApiPublicConfigs":
		return true
	}
	return false
}

// creates tells the root fields that run candidates and have the longer budget.
func creates(root string) bool {
	switch root {
	case "podFindAndDeployOnDemand", "deployCpuPod", "createCluster":
		return true
	}
	return false
}

// pays tells the root fields that can cause cost. A document may hold one of
// them.
func pays(root string) bool {
	switch root {
	case "podRentInterruptable", "podBidResume", "podResume", "podRestart", "podReset", "podEditJob",
		"saveEndpoint", "createNetworkVolume", "updateNetworkVolume":
		return true
	}
	return creates(root)
}

// resolvers gathers the resolvers of every type.
func resolvers(cfg Config) map[string]objectType {
	all := map[string]objectType{
		"Query":    queries(),
		"Mutation": mutations(),
	}
	for name, resolve := range all["Mutation"] {
		all["Mutation"][name] = afresh(resolve)
	}
	for _, family := range []map[string]objectType{
		podTypes(), catalogTypes(), accountTypes(), endpointTypes(), templateTypes(cfg.Legacy.Name()), storageTypes(), clusterTypes(),
	} {
		maps.Copy(all, family)
	}
	return all
}

// afresh forgets what the mutations before have read.
func afresh(mutate resolver) resolver {
	return func(ctx context.Context, x *exchange, source any, in engine.Input) (any, error) {
		x.Forget()
		return mutate(ctx, x, source, in)
	}
}

func queries() objectType {
	return objectType{
		"myself":             root(myself),
		"pod":                root(podByID),
		"gpuTypes":           root(gpuTypes),
		"cpuTypes":           root(cpuFlavors),
		"cpuFlavors":         root(cpuFlavors),
		"dataCenters":        root(dataCenters),
		"countryCodes":       root(countryCodes),
		"serverlessGpuPools": root(serverlessGPUPools),
		"podTemplates":       root(podTemplates),
		"podTemplate":        root(podTemplate),
	}
}

func mutations() objectType {
	return objectType{
		"podFindAndDeployOnDemand": root(deployGPUPod),
		"podRentInterruptable":     rejectUnsupported("podRentInterruptable"),
		"deployCpuPod":             root(deployCPUPod),
		"podStop":                  podAction(legacy.Stop),
		"podResume":                onPod(podResume),
		"podBidResume":             rejectUnsupported("podBidResume"),
		"podRestart":               podAction(legacy.Restart),
		"podReset":                 onPod(podReset),
		"podTerminate":             onPod(podTerminate),
		"podEditJob":               onPod(podEditJob),
		"saveEndpoint":             root(saveEndpoint),
		"deleteEndpoint":           root(deleteEndpoint),
		"updateEndpointTemplate":   root(updateEndpointTemplate),
		"saveTemplate":             root(saveTemplate),
		"deleteTemplate":           root(deleteTemplate),
		"saveRegistryAuth":         root(saveRegistryAuth),
		"updateRegistryAuth":       rejectUnsupported("updateRegistryAuth"),
		"deleteRegistryAuth":       root(deleteRegistryAuth),
		"createNetworkVolume":      root(createNetworkVolume),
		"updateNetworkVolume":      root(updateNetworkVolume),
		"deleteNetworkVolume":      root(deleteNetworkVolume),
		"updateUserSettings":       root(updateUserSettings),
		"createCluster":            root(createCluster),
		"deleteCluster":            root(deleteCluster),
	}
}
