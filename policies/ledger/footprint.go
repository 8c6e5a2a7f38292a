package ledger

import (
	"fmt"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// IsCounted reports whether the ledger contains resources of a kind.
func IsCounted(kind operation.Kind) bool {
	switch kind { //nolint:exhaustive // other kinds are not counted
	case operation.KindPod, operation.KindCluster, operation.KindEndpoint, operation.KindVolume, operation.KindSandbox:
		return true
	}
	return false
}

// Footprint returns the amounts of a resource. The resource is given as the platform's record, or as the state after a call. If priced is
// false, the cost is unknown and counted as 0.
func Footprint(kind operation.Kind, resource map[string]any, prices *catalog.Snapshot) (a Amounts, priced bool) {
	if catalog.SandboxEnded(kind, resource) {
		return a, true
	}
	a[GPUs], a[Pods], a[Workers], a[VolumeGB] = catalog.ResourceCounts(kind, resource)
	c := prices.ResourceCost(kind, resource)
	if c.Known {
		a[Burn] = int64(c.Hourly)
	}
	if kind == operation.KindSandbox {
		a[Sandboxes], a[Bounded], a[Cost] = 1, a[Burn], forecast(a[Burn], catalog.SandboxLifetime(resource).Milliseconds())
	}
	return a.Clamped(), c.Known
}

// Describe summarizes the machine, size and image of a resource. It returns the same text for a request that creates a resource and for the
// platform's record of that resource.
func Describe(kind operation.Kind, resource map[string]any) string {
	section := func(name string) map[string]any {
		s, _ := resource[name].(map[string]any)
		return s
	}
	switch kind { //nolint:exhaustive // other kinds have only a name
	case operation.KindPod:
		gpus, _, _, _ := catalog.ResourceCounts(kind, map[string]any{"gpu": resource["gpu"]})
		machine := section("gpu")["id"]
		if gpus == 0 {
			machine = section("cpu")["id"]
		}
		return fmt.Sprintf("%v x %d, %v", machine, gpus, resource["image"])
	case operation.KindCluster:
		c := section("compute")
		return fmt.Sprintf("%v x %v x %v", c["gpuTypeId"], c["podCount"], c["gpuCountPerPod"])
	case operation.KindEndpoint:
		gpus, _, workers, _ := catalog.ResourceCounts(kind, resource)
		return fmt.Sprintf("%d workers, %d GPUs, %v", workers, gpus, resource["image"])
	case operation.KindVolume:
		return fmt.Sprintf("%v GB in %v", resource["size"], resource["dataCenter"])
	case operation.KindTemplate:
		image, _ := resource["image"].(string)
		return image
	case operation.KindSandbox:
		image, _ := resource["imageName"].(string)
		return image
	}
	return ""
}

// PlatformResource is a resource as listed by the platform.
type PlatformResource struct {
	Kind  operation.Kind
	ID    string
	Name  string
	Print string
	// Owner is the owner named by the labels of the resource, or the zero Owner.
	Owner Owner
	// Call is the ID of the call that created the resource, read from its label, or "". See [operation.Label].
	Call string
	// GPU and DataCenter are the results of [Machine].
	GPU, DataCenter string
	Amounts         Amounts
	// ListRate is the list price in micro-dollars per hour. It is 0 if no other price was agreed.
	ListRate int64
	// Priced is false if the cost of the resource is unknown.
	Priced bool
	// WorkersUnknown is set for an endpoint whose workers could not be listed. The endpoint may then have more workers than its current
	// maximum.
	WorkersUnknown bool
	// Implausible is the member of the platform's record with an impossible value, or "". See [catalog.ImplausibleMember].
	Implausible string
	// Stoppable is set for a pod that can be stopped and is not locked.
	Stoppable bool
	// Age is the age in milliseconds by the platform's clock; -1 if the platform does not report it.
	Age int64
	// Started is the time when the cost of a sandbox began, Expires the latest time of its end, and Ended the actual time, by the
	// platform's clock. They are zero for other resources. Ended sandboxes are not listed.
	Started, Expires, Ended time.Time
	Use                     Usage
}

// LabelledOwner returns the owner named by the labels of a record. Only the gateway and holders of a platform key can set these labels.
func LabelledOwner(record map[string]any) Owner {
	return Owner{Team: operation.Label(record, operation.TeamLabel), Key: operation.Label(record, operation.KeyLabel)}
}

// ReadTimes sets Started, Expires and Ended from the platform's record of a sandbox. If the record of an ended sandbox has no end time,
// Ended is the time of the last change or, without such a time, the time of the response.
func (f *PlatformResource) ReadTimes(record map[string]any, answered time.Time) {
	f.Started, f.Expires = catalog.TimeMember(record, "createdAt"), catalog.TimeMember(record, "expiresAt")
	if !catalog.SandboxEnded(operation.KindSandbox, record) {
		return
	}
	for _, at := range []time.Time{answered, catalog.TimeMember(record, "updatedAt"), catalog.TimeMember(record, "terminatedAt")} {
		if !at.IsZero() {
			f.Ended = at
		}
	}
}

// drawStep is the interval, in milliseconds, between reductions of the remaining cost of a sandbox.
const drawStep = hour / 12

// LowerRemaining lowers the remaining cost of a sandbox, Amounts[Cost], by the cost accrued so far.
func (f *PlatformResource) LowerRemaining() {
	f.Amounts[Cost] = max(0, f.Amounts[Cost]-forecast(f.Amounts[Bounded], f.Age/drawStep*drawStep))
}

// maxSkew is the largest plausible difference between the clocks of the platform and the store.
const maxSkew = 5 * time.Minute

// StartTime returns platform, which is the time when the cost of a resource began by the platform's clock. It returns the zero time if that
// is so long before call, the time of the call, that the call cannot have created the resource.
func StartTime(platform, call time.Time) time.Time {
	if call.Sub(platform) > maxSkew {
		return time.Time{}
	}
	return platform
}

// about returns the metadata of a resource whose creating call is unknown.
func (f *PlatformResource) about() Metadata {
	a := Metadata{Name: f.Name, Description: f.Print, GPU: f.GPU, DataCenter: f.DataCenter}
	if !f.Expires.IsZero() {
		a.EndAt = f.Expires.Unix()
	}
	return a
}

// CreatedBy reports whether a call with an unknown outcome may have created the resource. Either the label of the resource names the call
// or, for kinds without labels, the resource matches the request and is no older than the call. age is the time since the call began.
func (f *PlatformResource) CreatedBy(call, kind string, about Metadata, age time.Duration) bool {
	if operation.SupportsLabels(f.Kind) {
		return kind == string(f.Kind) && f.Call == call
	}
	return kind == string(f.Kind) && (about.Name == "" || about.Name == f.Name) &&
		(about.Description == "" || strings.EqualFold(about.Description, f.Print)) && f.Age <= (age+clockSlack).Milliseconds()
}
