package operation

import "strings"

// Kind is the type of resource that an operation is about.
type Kind string

// Noun returns the common name of the kind.
func (k Kind) Noun() string {
	if k == KindRegistry {
		return "container registry auth"
	}
	return strings.ReplaceAll(string(k), "_", " ")
}

// Kinds of resources.
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
	// KindCatalog is the platform's catalog of offers and prices.
	KindCatalog Kind = "catalog"
	KindBilling Kind = "billing"
	// KindJob is a run on an endpoint; it is used by operations of the run interface.
	KindJob Kind = "job"
	// KindGateway is used by resources that the gateway itself serves.
	KindGateway Kind = "gateway"
	// KindUnknown is used for paths that the API's description does not contain.
	KindUnknown Kind = "unknown"
)

// Verb is the effect of an operation on its resource.
type Verb string

// Verbs. Each pod action has its own verb, so that policies need not read the body to distinguish a start from a stop.
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
	// VerbAction is a placeholder for the action named in the body; see Spec.EffectiveVerb.
	VerbAction Verb = "action"
)

// Changes reports whether the verb changes anything or incurs a cost.
func (v Verb) Changes() bool { return v != VerbRead && v != VerbLogs }

// HasResultState reports whether the caller chooses the state of the resource after the operation. Policies evaluate that state.
func (v Verb) HasResultState() bool {
	return v == VerbCreate || v == VerbUpdate || v == VerbStart || v == VerbRestart
}

// Price is the pricing rule of an operation.
type Price string

// Pricing rules.
const (
	// PriceFree is the rule for operations that start nothing billed by the hour. It includes jobs, which run on workers that are
	// priced with their endpoint.
	PriceFree Price = "free"
	// PricePod prices the resulting pod.
	PricePod Price = "pod"
	// PriceEndpoint prices a serverless endpoint with all workers busy.
	PriceEndpoint Price = "endpoint"
	// PriceCluster prices all members of a cluster.
	PriceCluster Price = "cluster"
	// PriceVolume prices the storage of a network volume.
	PriceVolume Price = "network_volume"
	// PriceSandbox prices a sandbox at the configured highest rate, because the catalog does not list rates of sandboxes (reference
	// platform-v2-growth, section 2.4).
	PriceSandbox Price = "sandbox"
)
