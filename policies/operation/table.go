package operation

// v2 lists the operations of the v2 API (reference platform-v2, section 2).
var v2 = []Spec{
	{ID: "getSshKeys", Kind: KindAccount, Verb: VerbRead},
	{ID: "updateSshKeys", Kind: KindAccount, Verb: VerbUpdate}, // replaces all keys regardless of the current ones

	{ID: "listSecrets", Kind: KindSecret, Verb: VerbRead, ListMember: "secrets", Optional: true},
	{ID: "createSecret", Kind: KindSecret, Verb: VerbCreate},
	{ID: "getSecret", Kind: KindSecret, Verb: VerbRead},
	{ID: "updateSecret", Kind: KindSecret, Verb: VerbUpdate, ReadOperation: "getSecret"},
	{ID: "deleteSecret", Kind: KindSecret, Verb: VerbDelete, ReadOperation: "getSecret"},

	{ID: "listPods", Kind: KindPod, Verb: VerbRead, ListMember: "pods", PagedMember: "pods"},
	{ID: "createPod", Kind: KindPod, Verb: VerbCreate, Price: PricePod, TakesTemplate: true},
	{ID: "getPod", Kind: KindPod, Verb: VerbRead},
	{ID: "updatePod", Kind: KindPod, Verb: VerbUpdate, Price: PricePod, ReadOperation: "getPod", TakesTemplate: true},
	{ID: "deletePod", Kind: KindPod, Verb: VerbDelete, ReadOperation: "getPod"},
	{ID: "getPodLogs", Kind: KindPod, Verb: VerbLogs, ReadOperation: "getPod"},
	{ID: "podAction", Kind: KindPod, Verb: VerbAction, Price: PricePod, ReadOperation: "getPod"},

	{ID: "listClusters", Kind: KindCluster, Verb: VerbRead, ListMember: "clusters"},
	{ID: "createCluster", Kind: KindCluster, Verb: VerbCreate, Price: PriceCluster, TakesTemplate: true},
	{ID: "getCluster", Kind: KindCluster, Verb: VerbRead},
	{ID: "updateCluster", Kind: KindCluster, Verb: VerbUpdate, ReadOperation: "getCluster"}, // only changes the name, which is free
	{ID: "deleteCluster", Kind: KindCluster, Verb: VerbDelete, ReadOperation: "getCluster"},
	{ID: "listClusterPods", Kind: KindCluster, Verb: VerbRead},

	{ID: "listEndpoints", Kind: KindEndpoint, Verb: VerbRead, ListMember: "endpoints", PagedMember: "endpoints", ReturnsAddresses: true},
	{ID: "createEndpoint", Kind: KindEndpoint, Verb: VerbCreate, Price: PriceEndpoint, TakesTemplate: true, ReturnsAddresses: true},
	{ID: "getEndpoint", Kind: KindEndpoint, Verb: VerbRead, ReturnsAddresses: true},
	{
		ID: "updateEndpoint", Kind: KindEndpoint, Verb: VerbUpdate, Price: PriceEndpoint, ReadOperation: "getEndpoint",
		TakesTemplate: true, ReturnsAddresses: true,
	},
	{ID: "deleteEndpoint", Kind: KindEndpoint, Verb: VerbDelete, ReadOperation: "getEndpoint"},
	{ID: "listEndpointWorkers", Kind: KindEndpoint, Verb: VerbRead},
	{ID: "listEndpointReleases", Kind: KindEndpoint, Verb: VerbRead, PagedMember: "releases"},
	{ID: "listEndpointBuilds", Kind: KindEndpoint, Verb: VerbRead, PagedMember: "builds"},
	{ID: "getEndpointBuild", Kind: KindEndpoint, Verb: VerbRead},
	{ID: "getWorkerLogs", Kind: KindEndpoint, Verb: VerbLogs}, // the API cannot read a single worker

	{ID: "listTemplates", Kind: KindTemplate, Verb: VerbRead, ListMember: "templates", PagedMember: "templates"},
	{ID: "createTemplate", Kind: KindTemplate, Verb: VerbCreate},
	{ID: "getTemplate", Kind: KindTemplate, Verb: VerbRead},
	{ID: "updateTemplate", Kind: KindTemplate, Verb: VerbUpdate, ReadOperation: "getTemplate"},
	{ID: "deleteTemplate", Kind: KindTemplate, Verb: VerbDelete, ReadOperation: "getTemplate"},

	{ID: "listNetworkVolumes", Kind: KindVolume, Verb: VerbRead, ListMember: "networkVolumes"},
	{ID: "createNetworkVolume", Kind: KindVolume, Verb: VerbCreate, Price: PriceVolume},
	{ID: "getNetworkVolume", Kind: KindVolume, Verb: VerbRead},
	{ID: "updateNetworkVolume", Kind: KindVolume, Verb: VerbUpdate, Price: PriceVolume, ReadOperation: "getNetworkVolume"},
	{ID: "deleteNetworkVolume", Kind: KindVolume, Verb: VerbDelete, ReadOperation: "getNetworkVolume"},

	{ID: "listRegistries", Kind: KindRegistry, Verb: VerbRead, ListMember: "registries"},
	{ID: "createRegistry", Kind: KindRegistry, Verb: VerbCreate},
	{ID: "getRegistry", Kind: KindRegistry, Verb: VerbRead},
	{ID: "deleteRegistry", Kind: KindRegistry, Verb: VerbDelete, ReadOperation: "getRegistry"},
	{ID: "listDelegations", Kind: KindDelegation, Verb: VerbRead},
	{ID: "createDelegation", Kind: KindDelegation, Verb: VerbCreate},
	{ID: "revokeDelegation", Kind: KindDelegation, Verb: VerbDelete}, // the API cannot read a single delegation

	// Sandboxes are only documented on the platform's web pages; see gateway/schema/sandboxes.json.
	{ID: "listSandboxes", Kind: KindSandbox, Verb: VerbRead, ListMember: "sandboxes", Optional: true},
	{ID: "createSandbox", Kind: KindSandbox, Verb: VerbCreate, Price: PriceSandbox, TakesTemplate: true},
	{ID: "getSandbox", Kind: KindSandbox, Verb: VerbRead},
	{ID: "deleteSandbox", Kind: KindSandbox, Verb: VerbDelete, ReadOperation: "getSandbox"},
	{ID: "execSandbox", Kind: KindSandbox, Verb: VerbExec, ReadOperation: "getSandbox"},
	{ID: "getSandboxLogs", Kind: KindSandbox, Verb: VerbLogs, ReadOperation: "getSandbox"},

	{ID: "listGpuTypes", Kind: KindCatalog, Verb: VerbRead},
	{ID: "getGpuType", Kind: KindCatalog, Verb: VerbRead},
	{ID: "listCpuTypes", Kind: KindCatalog, Verb: VerbRead},
	{ID: "getCpuType", Kind: KindCatalog, Verb: VerbRead},
	{ID: "listDataCenters", Kind: KindCatalog, Verb: VerbRead},
	{ID: "getDataCenter", Kind: KindCatalog, Verb: VerbRead},
	{ID: "listPublicTemplates", Kind: KindCatalog, Verb: VerbRead},

	{ID: "listBilling", Kind: KindBilling, Verb: VerbRead, ListMember: "records", AccountWide: true},
	{ID: "listPodBilling", Kind: KindBilling, Verb: VerbRead, ListMember: "records"},
	{ID: "listServerlessBilling", Kind: KindBilling, Verb: VerbRead, ListMember: "records"},
	{ID: "listEndpointBilling", Kind: KindBilling, Verb: VerbRead, ListMember: "records", AccountWide: true},
	{ID: "listNetworkVolumeBilling", Kind: KindBilling, Verb: VerbRead, ListMember: "records"},
	{ID: "listClusterBilling", Kind: KindBilling, Verb: VerbRead, ListMember: "records"},

	{ID: "getOpenAPI", Kind: KindGateway, Verb: VerbRead},
}

// Undescribed returns the specs of reads that neither the API nor the run interface describes: reads of a collection, and reads of paths
// under a resource whose kind has owners.
func Undescribed() []Spec {
	all := []Spec{{ID: "unknownRead", Kind: KindUnknown, Verb: VerbRead, Price: PriceFree}}
	for _, kind := range owned {
		all = append(all, Spec{ID: "unknownRead." + string(kind), Kind: kind, Verb: VerbRead, Price: PriceFree})
	}
	return all
}

// Body sizes in the run interface, in bytes.
const (
	maxRun      = 10 << 20
	maxWait     = 20 << 20
	maxBalanced = 30 << 20
)

// run lists the operations of the run interface (reference platform-v2, sections 12.1, 12.6, 12.8 and 12.10).
var run = []Spec{
	{ID: "run", Kind: KindJob, Verb: VerbRun, MaxBody: maxRun, SubmitsJob: true},
	{ID: "runsync", Kind: KindJob, Verb: VerbRun, MaxBody: maxWait, SubmitsJob: true, Synchronous: true},
	{ID: "jobStatus", Kind: KindJob, Verb: VerbRead},
	{ID: "jobStatusSync", Kind: KindJob, Verb: VerbRead},
	{ID: "streamJob", Kind: KindJob, Verb: VerbRead},
	{ID: "cancelJob", Kind: KindJob, Verb: VerbCancel},
	{ID: "retryJob", Kind: KindJob, Verb: VerbRun},
	{ID: "purgeQueue", Kind: KindJob, Verb: VerbCancel, AffectsAllJobs: true},
	{ID: "endpointHealth", Kind: KindJob, Verb: VerbRead},
	{ID: "listRequests", Kind: KindJob, Verb: VerbRead, AffectsAllJobs: true},

	{ID: "chatCompletions", Kind: KindJob, Verb: VerbRun, MaxBody: maxWait, Synchronous: true},
	{ID: "completions", Kind: KindJob, Verb: VerbRun, MaxBody: maxWait, Synchronous: true},
	{ID: "embeddings", Kind: KindJob, Verb: VerbRun, MaxBody: maxWait, Synchronous: true},
	{ID: "modelCall", Kind: KindJob, Verb: VerbRun, MaxBody: maxWait, Synchronous: true},
	{ID: "listModels", Kind: KindJob, Verb: VerbRead},
	{ID: "getModel", Kind: KindJob, Verb: VerbRead},
	{ID: "getOwnedModel", Kind: KindJob, Verb: VerbRead},

	{ID: "listBatches", Kind: KindJob, Verb: VerbRead, AffectsAllJobs: true},
	{ID: "createBatch", Kind: KindJob, Verb: VerbRun, MaxBody: maxRun, BodyMember: "requests", SubmitsJob: true},
	{ID: "getBatch", Kind: KindJob, Verb: VerbRead},
	{ID: "updateBatch", Kind: KindJob, Verb: VerbRun},
	{ID: "listBatchRequests", Kind: KindJob, Verb: VerbRead},
	{ID: "addBatchRequests", Kind: KindJob, Verb: VerbRun, MaxBody: maxRun},
	{ID: "deleteBatchRequest", Kind: KindJob, Verb: VerbCancel},
	{ID: "finalizeBatch", Kind: KindJob, Verb: VerbRun},
	{ID: "cancelBatch", Kind: KindJob, Verb: VerbCancel},

	{ID: "callEndpoint", Kind: KindJob, Verb: VerbRun, MaxBody: maxBalanced, Synchronous: true, Opaque: true},
}

// MaxBody is the size of the largest body that any operation accepts. MaxRead is the size of the largest body that is read
// completely before it is forwarded. Both are in bytes.
const (
	MaxBody = maxBalanced
	MaxRead = maxWait
)
