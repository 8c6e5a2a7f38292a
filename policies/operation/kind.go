package operation

import "strings"

// Kind is the sort of resource an operation is about.
type Kind string

// Noun is the common name of a kind of resource.
func (k Kind) Noun() string {
	if k == KindRegistry {
		return "container registry auth"
	}
	return strings.ReplaceAll(string(k), "_", " ")
}

// The kinds of resources.
const (
	KindPod        Kind = "pod"
	KindCluster    Kind = "cluster"
	KindEndpoint   Kind = "endpoint"
	KindTemplate   Kind = "template"
	KindVolume     Kind = "network_volume"
	KindRegistry   Kind = "registry"
	KindSecret     Kind = "secret"
	KindSandbox    Kind = "sandbox"
	KindDelegation Kind = "delegation"
	KindAccount    Kind = "account"
	// KindCatalog are the offers and their prices.
	KindCatalog Kind = "catalog"
	KindBilling Kind = "billing"
	// KindJob is a run on an endpoint: the operations of the run interface.
	KindJob Kind = "job"
	// KindGateway are the gateway's own answers.
	KindGateway Kind = "gateway"
	// KindUnknown are paths that the API's description does not know.
	KindUnknown Kind = "unknown"
)

// Verb is what an operation does to its resource.
type Verb string

// The verbs. Pod actions have verbs of their own, so that a policy need not
// look into the body to distinguish a start from a stop.
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
	// VerbExec runs a command in a resource.
	VerbExec Verb = "exec"
	// VerbAction stands in a row for the verb that the body names; see Row.Does.
	VerbAction Verb = "action"
)

// Changes reports whether the verb changes or costs something.
func (v Verb) Changes() bool { return v != VerbRead && v != VerbLogs }

// HasResultState reports whether the operation, carried out, leaves a resource in a
// state that the caller chose. Such an operation is judged on that state.
func (v Verb) HasResultState() bool {
	switch v {
	case VerbCreate, VerbUpdate, VerbStart, VerbRestart:
		return true
	default:
		return false
	}
}

// Price is the rule by which an operation is priced.
type Price string

// The price rules.
const (
	// PriceFree is for operations that start nothing billed by the hour. Jobs
	// are free too: they run on workers, which are priced with their endpoint.
	PriceFree Price = "free"
	// PricePod prices a pod as it will be.
	PricePod Price = "pod"
	// PriceEndpoint prices a serverless endpoint with all its workers busy.
	PriceEndpoint Price = "endpoint"
	// PriceCluster prices all members of a cluster.
	PriceCluster Price = "cluster"
	// PriceVolume prices the storage of a network volume.
	PriceVolume Price = "network_volume"
	// PriceSandbox prices a sandbox by the ceiling rate of the configuration: the catalog
	// does not have its rate (reference platform-v2-growth, section 2.4).
	PriceSandbox Price = "sandbox"
)
