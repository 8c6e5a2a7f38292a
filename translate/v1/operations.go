package v1

import "github.com/tollgate-dev/tollgate/translate/legacy"

// operations is the whole of v1: a row for each operation, in the order of the
// description. Routes are built from it and a test holds it against the
// description.
func operations() []row {
	const (
		get, post, patch, del = "GET", "POST", "PATCH", "DELETE"

		pods, pod             = "/v1/pods", "/v1/pods/{podId}"
		endpoints, endpoint   = "/v1/endpoints", "/v1/endpoints/{endpointId}"
		templates, template   = "/v1/templates", "/v1/templates/{templateId}"
		volumes, volume       = "/v1/networkvolumes", "/v1/networkvolumes/{networkVolumeId}"
		registries, registry  = "/v1/containerregistryauth", "/v1/containerregistryauth/{containerRegistryAuthId}"
		v2Pod, v2PodAction    = "/v2/pods/{podId}", "/v2/pods/{podId}/action"
		v2Endpoint            = "/v2/serverless/{endpointId}"
		v2Template            = "/v2/templates/{templateId}"
		v2Volumes, v2Volume   = "/v2/network-volumes", "/v2/network-volumes/{networkVolumeId}"
		v2Registry            = "/v2/registries/{containerRegistryAuthId}"
		v2Serverless          = "/v2/serverless"
		v2Templates, v2RegAll = "/v2/templates", "/v2/registries"
	)
	op := func(id, method, path, v2 string) Operation {
		return Operation{ID: id, Method: method, Path: path, V2: v2, Mutates: method != get}
	}
	act := func(id, verb string) Operation {
		o := op(id, post, pod+"/"+verb, "podAction")
		o.Bodiless = true
		return o
	}
	public := func(id, path, v2 string) Operation {
		return Operation{ID: id, Method: get, Path: path, V2: v2, Public: true}
	}
	return []row{
		{Operation: public("getOpenAPI", "/v1/openapi.json", "getOpenAPI"), successor: "/v2/openapi.json", serve: getOpenAPI},
		{Operation: public("getDocs", "/v1/docs", ""), serve: getDocs},

		{Operation: op("createPod", post, pods, "createPod"), successor: "/v2/pods", form: podCreateForm, serve: createPod},
		{Operation: op("listPods", get, pods, "listPods"), successor: "/v2/pods", serve: listPods},
		{Operation: op("getPod", get, pod, "getPod"), successor: v2Pod, serve: getPod},
		{Operation: op("updatePod", patch, pod, "updatePod"), successor: v2Pod, form: podUpdateForm, serve: updatePod},
		{Operation: op("deletePod", del, pod, "deletePod"), successor: v2Pod, serve: deletePod},
		{Operation: op("updatePodByPost", post, pod+"/update", "updatePod"), successor: v2Pod, form: podUpdateForm, serve: updatePod},
		{Operation: act("startPod", "start"), successor: v2PodAction, serve: podAction(legacy.Start)},
		{Operation: act("stopPod", "stop"), successor: v2PodAction, serve: podAction(legacy.Stop)},
		{Operation: act("resetPod", "reset"), successor: v2PodAction, serve: resetPod},
		{Operation: act("restartPod", "restart"), successor: v2PodAction, serve: podAction(legacy.Restart)},

		{Operation: op("createEndpoint", post, endpoints, "createEndpoint"), successor: v2Serverless, form: endpointCreateForm, serve: createEndpoint},
		{Operation: op("listEndpoints", get, endpoints, "listEndpoints"), successor: v2Serverless, serve: listEndpoints},
		{Operation: op("getEndpoint", get, endpoint, "getEndpoint"), successor: v2Endpoint, serve: getEndpoint},
		{Operation: op("updateEndpoint", patch, endpoint, "updateEndpoint"), successor: v2Endpoint, form: endpointUpdateForm, serve: updateEndpoint},
		{Operation: op("deleteEndpoint", del, endpoint, "deleteEndpoint"), successor: v2Endpoint, serve: deleteEndpoint},
		{Operation: op("updateEndpointByPost", post, endpoint+"/update", "updateEndpoint"), successor: v2Endpoint, form: endpointUpdateForm, serve: updateEndpoint},

		{Operation: op("createTemplate", post, templates, "createTemplate"), successor: v2Templates, form: templateCreateForm, serve: createTemplate},
		{Operation: op("listTemplates", get, templates, "listTemplates"), successor: v2Templates, serve: listTemplates},
		{Operation: op("getTemplate", get, template, "getTemplate"), successor: v2Template, serve: getTemplate},
		{Operation: op("updateTemplate", patch, template, "updateTemplate"), successor: v2Template, form: templateUpdateForm, serve: updateTemplate},
		{Operation: op("deleteTemplate", del, template, "deleteTemplate"), successor: v2Template, serve: deleteTemplate},
		{Operation: op("updateTemplateByPost", post, template+"/update", "updateTemplate"), successor: v2Template, form: templateUpdateForm, serve: updateTemplate},

		{Operation: op("createNetworkVolume", post, volumes, "createNetworkVolume"), successor: v2Volumes, form: volumeCreateForm, brief: true, serve: createNetworkVolume},
		{Operation: op("listNetworkVolumes", get, volumes, "listNetworkVolumes"), successor: v2Volumes, brief: true, serve: listNetworkVolumes},
		{Operation: op("getNetworkVolume", get, volume, "getNetworkVolume"), successor: v2Volume, brief: true, serve: getNetworkVolume},
		{Operation: op("updateNetworkVolume", patch, volume, "updateNetworkVolume"), successor: v2Volume, form: volumeUpdateForm, brief: true, serve: updateNetworkVolume},
		{Operation: op("deleteNetworkVolume", del, volume, "deleteNetworkVolume"), successor: v2Volume, brief: true, serve: deleteNetworkVolume},
		{Operation: op("updateNetworkVolumeByPost", post, volume+"/update", "updateNetworkVolume"), successor: v2Volume, form: volumeUpdateForm, brief: true, serve: updateNetworkVolume},

		{Operation: op("createContainerRegistryAuth", post, registries, "createRegistry"), successor: v2RegAll, form: registryCreateForm, serve: createRegistryAuth},
		{Operation: op("listContainerRegistryAuths", get, registries, "listRegistries"), successor: v2RegAll, serve: listRegistryAuths},
		{Operation: op("getContainerRegistryAuth", get, registry, "getRegistry"), successor: v2Registry, serve: getRegistryAuth},
		{Operation: op("deleteContainerRegistryAuth", del, registry, "deleteRegistry"), successor: v2Registry, serve: deleteRegistryAuth},

		{Operation: op("podBilling", get, "/v1/billing/pods", "listPodBilling"), successor: "/v2/billing/pods", serve: podBilling},
		{Operation: op("endpointBilling", get, "/v1/billing/endpoints", "listServerlessBilling"), successor: "/v2/billing/serverless", serve: endpointBilling},
		{Operation: op("networkVolumeBilling", get, "/v1/billing/networkvolumes", "listNetworkVolumeBilling"), successor: "/v2/billing/network-volumes", serve: networkVolumeBilling},
	}
}
