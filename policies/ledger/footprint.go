package ledger

import (
	"fmt"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// IsCounted reports whether resources of a kind are in the ledger.
func IsCounted(kind operation.Kind) bool {
	switch kind { //nolint:exhaustive // the others take nothing that is counted
	case operation.KindPod, operation.KindCluster, operation.KindEndpoint, operation.KindVolume, operation.KindSandbox:
		return true
	}
	return false
}

// Footprint returns the amounts of a resource as it stands: the platform's record of it, or
// the state that a call leads to. priced is false if its
// cost is unknown and counts for nothing.
func Footprint(kind operation.Kind, resource map[string]any, prices *catalog.Snapshot) (a Amounts, priced bool) {
	if catalog.Ended(kind, resource) {
		return a, true
	}
	a[GPUs], a[Pods], a[Workers], a[VolumeGB] = catalog.Holds(kind, resource)
	c := prices.Standing(kind, resource)
	if c.Known {
		a[Burn] = int64(c.Hourly)
	}
	if kind == operation.KindSandbox {
		a[Sandboxes], a[Bounded], a[Cost] = 1, a[Burn], forecast(a[Burn], catalog.Lifetime(resource).Milliseconds())
	}
	return a.Clamped(), c.Known
}

// Descriptionibe describes the parts of a resource, in the same words for the state that
// a create leads to and for the platform's record of the result.
func Describe(kind operation.Kind, resource map[string]any) string {
	section := func(name string) map[string]any {
		s, _ := resource[name].(map[string]any)
		return s
	}
	switch kind { //nolint:exhaustive // the others have nothing but a name
	case operation.KindPod:
		gpus, _, _, _ := catalog.Holds(kind, map[string]any{"gpu": resource["gpu"]})
		machine := section("gpu")["id"]
		if gpus == 0 {
			machine = section("cpu")["id"]
		}
		return fmt.Sprintf("%v x %d, %v", machine, gpus, resource["image"])
	case operation.KindCluster:
		c := section("compute")
		return fmt.Sprintf("%v x %v x %v", c["gpuTypeId"], c["podCount"], c["gpuCountPerPod"])
	case operation.KindEndpoint:
		gpus, _, workers, _ := catalog.Holds(kind, resource)
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

// HoldsCommittedormResource is a resource as the platform lists it.
type PlatformResource struct {
	Kind  operation.Kind
	ID    string
	Name  string
	Print string
	// Owner is its owner, as its labels say; zero if it has none.
	Owner Owner
	// Call is the call that made it, as its label says; "" if it has none. See [operation.Labelled].
	Call string
	// GPU and DataCenter are those of [Machine].
	GPU, DataCenter string
	Amounts         Amounts
	// ListRate is its cost per hour on the platform's list, in micro-dollars, 0 where
	// nothing else was agreed.
	ListRate int64
	// Priced is false if its cost is unknown.
	Priced bool
	// WorkersUnknown is true of an endpoint whose workers were not listed: there may be more than
	// it is to have.
	WorkersUnknown bool
	// Implausible is the member of the platform's record that the resource cannot have, "" for none; see [catalog.Implausible].
	Implausible string
	// Stoppable is true of a pod that can be stopped and is not locked.
	Stoppable bool
	// Age is how old it is by the platform's clock, in milliseconds; -1 if the
	// platform does not say.
	Age int64
	// StartedTime is when the cost of a sandbox began, Ends when it ends at the latest, and Ended when it has ended, by the platform's clock;
	// zero for other resources. A sandbox that has ended is not listed.
	Started, Expires, Ended time.Time
	Use                     Usage
}

// LabelledOwner returns the owner that the labels of a record name. Only the gateway and holders of a platform key can set them.
func LabelledOwner(record map[string]any) Owner {
	return Owner{Team: operation.Label(record, operation.TeamLabel), Key: operation.Label(record, operation.KeyLabel)}
}

// ReadTimes reads Began, Ends and Ended from the platform's record of a sandbox. One that does not say when it ended is taken to have ended
// with its last change, or else at the time of the answer.
func (f *PlatformResource) ReadTimes(record map[string]any, answered time.Time) {
	f.Started, f.Expires = catalog.Instant(record, "createdAt"), catalog.Instant(record, "expiresAt")
	if !catalog.Ended(operation.KindSandbox, record) {
		return
	}
	for _, at := range []time.Time{answered, catalog.Instant(record, "updatedAt"), catalog.Instant(record, "terminatedAt")} {
		if !at.IsZero() {
			f.Ended = at
		}
	}
}

// drawStep is the step in which the remaining cost of a sandbox is lowered while it accrues, in milliseconds.
const drawStep = hour / 12

// LowerRemaining lowers the remaining cost by the cost that has accrued so far.
func (f *PlatformResource) LowerRemaining() {
	f.Amounts[Cost] = max(0, f.Amounts[Cost]-forecast(f.Amounts[Bounded], f.Age/drawStep*drawStep))
}

// maxSkew is the greatest difference between the clocks of the platform and the store that is taken for plausible.
const maxSkew = 5 * time.Minute

// StartTimeed returns when the cost of a new resource began by the platform's clock, zero if it cannot be the result of a call of that time.
func StartTime(platform, call time.Time) time.Time {
	if call.Sub(platform) > maxSkew {
		return time.Time{}
	}
	return platform
}

// about is the description of a resource that no call is known to have made.
func (f *PlatformResource) about() Metadata {
	a := Metadata{Name: f.Name, Description: f.Print, GPU: f.GPU, DataCenter: f.DataCenter}
	if !f.Expires.IsZero() {
		a.EndAt = f.Expires.Unix()
	}
	return a
}

// CreatedBy reports whether a resource can be the result of a create with an unknown outcome: its label names the call or, if resources of
// its kind have no labels, it matches the request and is no older than the call.
func (f *PlatformResource) CreatedBy(call, kind string, about Metadata, age time.Duration) bool {
	if operation.Labelled(f.Kind) {
		return kind == string(f.Kind) && f.Call == call
	}
	return kind == string(f.Kind) && (about.Name == "" || about.Name == f.Name) &&
		(about.Description == "" || strings.EqualFold(about.Description, f.Print)) && f.Age <= (age+clockSlack).Milliseconds()
}
