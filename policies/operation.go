package policies

// Kind is the sort of resource an operation is about.
type Kind string

// The kinds of resources.
const (
	KindPod        Kind = "pod"
	KindCluster    Kind = "cluster"
	KindEndpoint   Kind = "endpoint"
	KindTemplate   Kind = "template"
	KindVolume     Kind = "network_volume"
	KindRegistry   Kind = "registry"
	KindDelegation Kind = "delegation"
	KindAccount    Kind = "account"
	KindCatalog    Kind = "catalog"
	KindBilling    Kind = "billing"
	KindJob        Kind = "job"
	KindGateway    Kind = "gateway"
)

// Verb is what an operation does to its resource.
type Verb string

// The verbs. Pod actions are verbs of their own, so that a policy need not
// look into the body to tell a start from a stop.
const (
	VerbRead    Verb = "read"
	VerbLogs    Verb = "logs"
	VerbCreate  Verb = "create"
	VerbUpdate  Verb = "update"
	VerbDelete  Verb = "delete"
	VerbStart   Verb = "start"
	VerbStop    Verb = "stop"
	VerbRestart Verb = "restart"
	VerbRun     Verb = "run"
	VerbCancel  Verb = "cancel"
)

// verbPodAction stands for podAction until its body is known.
const verbPodAction Verb = "action"

// Settles tells whether the operation, carried out, leaves a resource whose
// state was chosen by the caller: such an operation is judged on the state
// after it, so Input.Resource.After must be given.
func (v Verb) Settles() bool {
	switch v {
	case VerbCreate, VerbUpdate, VerbStart, VerbRestart:
		return true
	case VerbRead, VerbLogs, VerbDelete, VerbStop, VerbRun, VerbCancel, verbPodAction:
		return false
	default:
		return false
	}
}

// Operation classifies an operation: an operationId of the v2 API, or an
// operation of the run interface. ok is false for an unknown one, which no
// policy can judge and the engine refuses to decide.
//
// podAction is given the verb of its action by VerbOf.
func Operation(id string) (kind Kind, verb Verb, ok bool) {
	for _, table := range []func(string) (Kind, Verb){
		podOperation, clusterOperation, endpointOperation, templateOperation, storageOperation,
		registryOperation, accountOperation, catalogOperation, runOperation,
	} {
		if kind, verb := table(id); kind != "" {
			return kind, verb, true
		}
	}
	return "", "", false
}

// Operations lists every operation the engine knows, for completeness checks.
func Operations() []string {
	return []string{
		"getSshKeys", "updateSshKeys",
		"listPods", "createPod", "getPod", "updatePod", "deletePod", "getPodLogs", "podAction",
		"listClusters", "createCluster", "getCluster", "updateCluster", "deleteCluster", "listClusterPods",
		"listEndpoints", "createEndpoint", "getEndpoint", "updateEndpoint", "deleteEndpoint",
		"listEndpointWorkers", "listEndpointReleases", "getWorkerLogs",
		"listTemplates", "createTemplate", "getTemplate", "updateTemplate", "deleteTemplate",
		"listNetworkVolumes", "createNetworkVolume", "getNetworkVolume", "updateNetworkVolume", "deleteNetworkVolume",
		"listRegistries", "createRegistry", "getRegistry", "deleteRegistry",
		"listDelegations", "createDelegation", "revokeDelegation",
		"listGpuTypes", "getGpuType", "listCpuTypes", "getCpuType",
		"listDataCenters", "getDataCenter", "listPublicTemplates",
		"listBilling", "listPodBilling", "listServerlessBilling", "listEndpointBilling",
		"listNetworkVolumeBilling", "listClusterBilling", "getOpenAPI",
		"run", "runsync", "jobStatus", "jobStatusSync", "streamJob", "cancelJob",
		"retryJob", "purgeQueue", "endpointHealth", "listRequests",
		"chatCompletions", "completions", "listModels",
	}
}

// VerbOf is the verb of podAction for the action its body names; "" for an
// action the platform does not have.
func VerbOf(action string) Verb {
	switch action {
	case "start":
		return VerbStart
	case "stop":
		return VerbStop
	case "restart":
		return VerbRestart
	case "terminate":
		return VerbDelete
	default:
		return ""
	}
}

func podOperation(id string) (Kind, Verb) {
	switch id {
	case "listPods", "getPod":
		return KindPod, VerbRead
	case "getPodLogs":
		return KindPod, VerbLogs
	case "createPod":
		return KindPod, VerbCreate
	case "updatePod":
		return KindPod, VerbUpdate
	case "deletePod":
		return KindPod, VerbDelete
	case "podAction":
		return KindPod, verbPodAction
	default:
		return "", ""
	}
}

func clusterOperation(id string) (Kind, Verb) {
	switch id {
	case "listClusters", "getCluster", "listClusterPods":
		return KindCluster, VerbRead
	case "createCluster":
		return KindCluster, VerbCreate
	case "updateCluster":
		return KindCluster, VerbUpdate
	case "deleteCluster":
		return KindCluster, VerbDelete
	default:
		return "", ""
	}
}

func endpointOperation(id string) (Kind, Verb) {
	switch id {
	case "listEndpoints", "getEndpoint", "listEndpointWorkers", "listEndpointReleases":
		return KindEndpoint, VerbRead
	case "getWorkerLogs":
		return KindEndpoint, VerbLogs
	case "createEndpoint":
		return KindEndpoint, VerbCreate
	case "updateEndpoint":
		return KindEndpoint, VerbUpdate
	case "deleteEndpoint":
		return KindEndpoint, VerbDelete
	default:
		return "", ""
	}
}

func templateOperation(id string) (Kind, Verb) {
	switch id {
	case "listTemplates", "getTemplate":
		return KindTemplate, VerbRead
	case "createTemplate":
		return KindTemplate, VerbCreate
	case "updateTemplate":
		return KindTemplate, VerbUpdate
	case "deleteTemplate":
		return KindTemplate, VerbDelete
	default:
		return "", ""
	}
}

func storageOperation(id string) (Kind, Verb) {
	switch id {
	case "listNetworkVolumes", "getNetworkVolume":
		return KindVolume, VerbRead
	case "createNetworkVolume":
		return KindVolume, VerbCreate
	case "updateNetworkVolume":
		return KindVolume, VerbUpdate
	case "deleteNetworkVolume":
		return KindVolume, VerbDelete
	default:
		return "", ""
	}
}

func registryOperation(id string) (Kind, Verb) {
	switch id {
	case "listRegistries", "getRegistry":
		return KindRegistry, VerbRead
	case "createRegistry":
		return KindRegistry, VerbCreate
	case "deleteRegistry":
		return KindRegistry, VerbDelete
	case "listDelegations":
		return KindDelegation, VerbRead
	case "createDelegation":
		return KindDelegation, VerbCreate
	case "revokeDelegation":
		return KindDelegation, VerbDelete
	default:
		return "", ""
	}
}

func accountOperation(id string) (Kind, Verb) {
	switch id {
	case "getSshKeys":
		return KindAccount, VerbRead
	case "updateSshKeys":
		return KindAccount, VerbUpdate
	case "listBilling", "listPodBilling", "listServerlessBilling", "listEndpointBilling",
		"listNetworkVolumeBilling", "listClusterBilling":
		return KindBilling, VerbRead
	case "getOpenAPI":
		return KindGateway, VerbRead
	default:
		return "", ""
	}
}

func catalogOperation(id string) (Kind, Verb) {
	switch id {
	case "listGpuTypes", "getGpuType", "listCpuTypes", "getCpuType", "listDataCenters", "getDataCenter",
		"listPublicTemplates":
		return KindCatalog, VerbRead
	default:
		return "", ""
	}
}

func runOperation(id string) (Kind, Verb) {
	switch id {
	case "run", "runsync", "retryJob", "chatCompletions", "completions":
		return KindJob, VerbRun
	case "jobStatus", "jobStatusSync", "streamJob", "endpointHealth", "listRequests", "listModels":
		return KindJob, VerbRead
	case "cancelJob", "purgeQueue":
		return KindJob, VerbCancel
	default:
		return "", ""
	}
}
