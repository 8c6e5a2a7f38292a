package graphql

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// public tells the root fields that need no credential: clients price GPUs
// without one. myself is null then.
func public(root string) bool {
	switch root {
	case "gpuTypes", "cpuTypes", "cpuFlavors", "dataCenters", "countryCodes", "serverlessGpuPools", "podTemplates",
		"myself", "__typename", "__schema", "__type":
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
func resolvers(schema *ast.Schema, cfg Config) map[string]objectType {
	all := map[string]objectType{
		"Query":    queries(),
		"Mutation": mutations(),
	}
	for _, family := range []map[string]objectType{
		podTypes(), catalogTypes(), accountTypes(), endpointTypes(), templateTypes(cfg.Brand), storageTypes(),
		clusterTypes(), introspectionTypes(),
	} {
		maps.Copy(all, family)
	}
	maps.Copy(all["Query"], introspectionRoots(schema))
	return all
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
		"podStop":                  root(podStop),
		"podResume":                root(podResume),
		"podBidResume":             rejectUnsupported("podBidResume"),
		"podRestart":               root(podRestart),
		"podReset":                 root(podReset),
		"podTerminate":             root(podTerminate),
		"podEditJob":               root(podEditJob),
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

// complete compares the schema with the resolvers, both ways.
func complete(schema *ast.Schema, types map[string]objectType) error {
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(schema.Types)) {
		def := schema.Types[name]
		if def.Kind != ast.Object {
			continue
		}
		for _, f := range def.Fields {
			if types[name][f.Name] == nil {
				faults = append(faults, fmt.Errorf("%s.%s has no resolver", name, f.Name))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		def := schema.Types[name]
		for _, f := range slices.Sorted(maps.Keys(types[name])) {
			if def == nil || def.Fields.ForName(f) == nil {
				faults = append(faults, fmt.Errorf("resolver %s.%s is not in the schema", name, f))
			}
		}
	}
	return errors.Join(faults...)
}
