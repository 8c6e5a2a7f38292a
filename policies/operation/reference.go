package operation

import (
	"maps"
	"slices"
	"strings"
)

// Location is the part of a request that contains a resource ID.
type Location string

// Locations.
const (
	InPath  Location = "path"
	InQuery Location = "query"
	InBody  Location = "body"
)

// Reference is a parameter or body member of an operation that contains a resource ID.
type Reference struct {
	In Location
	// Name is the name of the parameter. For a body, it is the path to the ID, in which "*" matches every item of a list:
	// "mounts.network.*.volumeId".
	Name string
	Kind Kind
	// Changes is set if the call changes the resource or allows its result to change it. Otherwise the call only reads or uses it.
	Changes bool
}

// owned lists the kinds whose resources have an owner, the caller that created them. Resources of other kinds belong to the
// account.
var owned = []Kind{KindPod, KindCluster, KindEndpoint, KindVolume, KindTemplate, KindRegistry, KindSecret, KindSandbox}

// HasOwner reports whether resources of a kind have an owner.
func HasOwner(kind Kind) bool { return slices.Contains(owned, kind) }

// Labels that the gateway sets. Callers cannot use keys with this prefix.
const (
	LabelPrefix = "tollgate-"
	// CallLabel contains the ID of the call that created the resource. TeamLabel and KeyLabel contain its owner.
	CallLabel = LabelPrefix + "call"
	TeamLabel = LabelPrefix + "team"
	KeyLabel  = LabelPrefix + "key"
)

// SupportsLabels reports whether resources of a kind can have labels, including those of the gateway.
func SupportsLabels(kind Kind) bool { return kind == KindSandbox }

// Label returns the value of a label in the platform's record of a resource, or "".
func Label(record map[string]any, key string) string {
	labels, _ := record["labels"].(map[string]any)
	value, _ := labels[key].(string)
	return value
}

// queries maps query parameters to the kind of resource they name, in any operation. Billing records have members with the same
// names.
var queries = map[string]Kind{"podId": KindPod, "serverlessId": KindEndpoint, "networkVolumeId": KindVolume, "clusterId": KindCluster}

// members lists the body members that name a resource. A resource that mounts a volume can change it.
var members = []Reference{
	{InBody, "templateId", KindTemplate, false},
	{InBody, "registry", KindRegistry, false},
	{InBody, "mounts.network.*.volumeId", KindVolume, true},
	{InBody, "networkVolumes.*", KindVolume, true},
}

// References returns the parameters and body members that can contain a resource ID. The operation need not have all of these parameters.
func (r Spec) References() []Reference {
	var out []Reference
	switch {
	case r.Kind == KindJob:
		out = append(out, Reference{InPath, "id", KindEndpoint, false}, // a run uses its endpoint
			Reference{InPath, "jobId", KindJob, false}, Reference{InPath, "batchId", KindJob, false})
	case HasOwner(r.Kind):
		out = append(out, Reference{InPath, "id", r.Kind, r.Verb.Changes()})
	case r.Kind == KindBilling:
		for _, name := range slices.Sorted(maps.Keys(queries)) {
			out = append(out, Reference{InQuery, name, queries[name], false})
		}
	}
	shape := BodyShape(r.ID)
	for _, m := range members {
		if shape != nil && shape.Has(strings.Split(strings.ReplaceAll(m.Name, "*", "0"), ".")) {
			out = append(out, m)
		}
	}
	return out
}

// Replace returns a copy of body with each ID at the reference replaced with the result of translate. Unchanged parts are shared with body.
func (r Reference) Replace(body any, translate func(id string) string) any {
	return replace(body, strings.Split(r.Name, "."), translate)
}

func replace(v any, path []string, to func(string) string) any {
	if len(path) == 0 {
		if id, ok := v.(string); ok {
			return to(id)
		}
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		if member, ok := v[path[0]]; ok {
			v = maps.Clone(v)
			v[path[0]] = replace(member, path[1:], to)
		}
		return v
	case []any:
		if path[0] != "*" {
			return v
		}
		v = slices.Clone(v)
		for i := range v {
			v[i] = replace(v[i], path[1:], to)
		}
		return v
	}
	return v
}

// RecordOwner returns the ID of the resource whose owner a list record belongs to: for a pod in a cluster, the cluster; for a
// billing record, the billed resource; otherwise the resource itself.
func (r Spec) RecordOwner(record map[string]any) string {
	if r.Kind == KindBilling {
		for name := range queries {
			if id, ok := record[name].(string); ok {
				return id
			}
		}
		return ""
	}
	if cluster, ok := record["cluster"].(map[string]any); ok {
		record = cluster
	}
	id, _ := record["id"].(string)
	return id
}
