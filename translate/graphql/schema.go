package graphql

import (
	"context"
	"maps"
	"sync"

	"github.com/tollgate-dev/tollgate/translate/graphql/engine"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// rootField is one field of Query or Mutation.
type rootField struct {
	resolve resolver
	// v2 lists the operations that replace the field, most important first.
	v2 []string
	// public reports whether the field needs no credential: clients query GPU prices without one.
	public bool
	// pays reports whether the field can cause cost; a document may contain one such field. creates reports whether it
	// also tries several candidates and has the longer time budget.
	pays, creates bool
	// unsupported states why v2 has no equivalent, or is "".
	unsupported string
}

func queries() map[string]rootField {
	open := func(resolve resolver, v2 ...string) rootField {
		return rootField{resolve: resolve, v2: v2, public: true}
	}
	return map[string]rootField{
		// null without a credential
		"myself": open(root(myself), "listPods", "listEndpoints", "listTemplates", "listNetworkVolumes",
			"listRegistries", "getSshKeys", "listBilling"),
		"pod":                {resolve: byID("input.podId", podByID), v2: []string{"getPod"}},
		"gpuTypes":           open(root(gpuTypes), "listGpuTypes"),
		"cpuTypes":           open(root(cpuFlavors), "listCpuTypes"),
		"cpuFlavors":         open(root(cpuFlavors), "listCpuTypes"),
		"dataCenters":        open(root(dataCenters), "listDataCenters"),
		"countryCodes":       open(root(countryCodes), "listDataCenters"),
		"serverlessGpuPools": open(root(serverlessGPUPools), "listGpuTypes"),
		"podTemplates":       open(root(podTemplates), "listTemplates", "listPublicTemplates"),
		"podTemplate":        {resolve: byID("id", podTemplate), v2: []string{"getTemplate"}},
	}
}

func mutations() map[string]rootField {
	plain := func(resolve resolver, v2 ...string) rootField { return rootField{resolve: resolve, v2: v2} }
	paid := func(resolve resolver, v2 ...string) rootField { return rootField{resolve: resolve, v2: v2, pays: true} }
	makes := func(resolve resolver, v2 string) rootField {
		return rootField{resolve: resolve, v2: []string{v2}, pays: true, creates: true}
	}
	gone := func(pays bool, reason string) rootField {
		return rootField{resolve: rejected(reason), pays: pays, unsupported: reason}
	}
	return map[string]rootField{
		"podFindAndDeployOnDemand": makes(root(deployGPUPod), "createPod"),
		"podRentInterruptable":     gone(true, textNoSpot),
		"deployCpuPod":             makes(root(deployCPUPod), "createPod"),
		"podStop":                  plain(podAction(legacy.Stop), "podAction"),
		"podResume":                paid(onPod(podResume), "podAction"),
		"podBidResume":             gone(true, textNoSpot),
		"podRestart":               paid(podAction(legacy.Restart), "podAction"),
		"podReset":                 paid(onPod(podReset), "podAction"),
		"podTerminate":             plain(deletes("input.podId", nil, (*legacy.Session).DeletePod), "deletePod"),
		"podEditJob":               paid(onPod(podEditJob), "updatePod"),
		"saveEndpoint":             paid(root(saveEndpoint), "createEndpoint", "updateEndpoint"),
		"deleteEndpoint":           plain(deletes("id", nil, (*legacy.Session).DeleteEndpoint), "deleteEndpoint"),
		"updateEndpointTemplate":   plain(root(updateEndpointTemplate), "updateEndpoint"),
		"saveTemplate":             plain(root(saveTemplate), "createTemplate", "updateTemplate"),
		"deleteTemplate":           plain(byID("templateName", deleteTemplate), "deleteTemplate"),
		"saveRegistryAuth":         plain(root(saveRegistryAuth), "createRegistry"),
		"updateRegistryAuth":       gone(false, "registry credentials cannot be updated, create new ones"),
		"deleteRegistryAuth":       plain(deletes("registryAuthId", true, (*legacy.Session).DeleteRegistry), "deleteRegistry"),
		"createNetworkVolume":      paid(root(createNetworkVolume), "createNetworkVolume"),
		"updateNetworkVolume":      paid(root(updateNetworkVolume), "updateNetworkVolume"),
		"deleteNetworkVolume":      plain(deletes("input.id", nil, (*legacy.Session).DeleteVolume), "deleteNetworkVolume"),
		"updateUserSettings":       plain(root(updateUserSettings), "updateSshKeys"),
		"createCluster":            makes(root(createCluster), "createCluster"),
		"deleteCluster":            plain(deletes("input.id", true, (*legacy.Session).DeleteCluster), "deleteCluster"),
	}
}

// rootFields returns the fields of Query and Mutation by name. No name occurs in both.
var rootFields = sync.OnceValue(func() map[string]rootField {
	all := queries()
	maps.Copy(all, mutations())
	return all
})

// resolvers returns the resolvers of every type.
func resolvers(cfg Config) map[string]objectType {
	all := map[string]objectType{
		"Query":    make(objectType),
		"Mutation": make(objectType),
	}
	for name, f := range queries() {
		all["Query"][name] = f.resolve
	}
	for name, f := range mutations() {
		all["Mutation"][name] = invalidating(f.resolve)
	}
	for _, family := range []map[string]objectType{
		podTypes(), catalogTypes(), accountTypes(), billingTypes(cfg.Legacy), endpointTypes(), templateTypes(cfg.Legacy.Name()),
		storageTypes(), clusterTypes(),
	} {
		maps.Copy(all, family)
	}
	return all
}

// invalidating adapts a mutation so that it does not use values read before the previous mutations.
func invalidating(mutate resolver) resolver {
	return func(ctx context.Context, x *exchange, source any, in engine.Input) (any, error) {
		x.Invalidate()
		return mutate(ctx, x, source, in)
	}
}
