package operation

import (
	"maps"
	"slices"
	"strings"
)

// Location is a part of a request in which the id of a resource can stand.
type Location string

// The places.
const (
	InPath  Location = "path"
	InQuery Location = "query"
	InBody  Location = "body"
)

// Reference is a place of an operation's calls in which the id of a resource stands.
type Reference struct {
	In Location
	// Name is that of a parameter; in a body, the members that lead to the id, with
	// "*" for each item of a list: "mounts.network.*.volumeId".
	Name string
	Kind Kind
	// Changes is set if the call changes the resource, or lets its result do so; it reads or
	// uses it otherwise.
	Changes bool
}

// owned are the kinds whose resources belong to their makers. Resources of the other kinds are the account's.
var owned = []Kind{KindPod, KindCluster, KindEndpoint, KindVolume, KindTemplate, KindRegistry, KindSecret, KindSandbox}

// HasOwner reports whether resources of a kind belong to their makers.
func HasOwner(kind Kind) bool { return slices.Contains(owned, kind) }

// The gateway's own labels of resources. Callers cannot use keys with the prefix.
const (
	LabelPrefix = "tollgate-"
	// CallLabel names the call that made the resource, TeamLabel and KeyLabel its owner.
	CallLabel = LabelPrefix + "call"
	TeamLabel = LabelPrefix + "team"
	KeyLabel  = LabelPrefix + "key"
)

// SupportsLabels reports whether resources of a kind have labels, the gateway's own among them.
func SupportsLabels(kind Kind) bool { return kind == KindSandbox }

// Label returns the value of a label in the platform's record of a resource, "" if there is none.
func Label(record map[string]any, key string) string {
	labels, _ := record["labels"].(map[string]any)
	value, _ := labels[key].(string)
	return value
}

// queries are the parameters that name a resource, in whatever operation has them;
// records of billing have members of the same names.
var queries = map[string]Kind{"podId": KindPod, "serverlessId": KindEndpoint, "networkVolumeId": KindVolume, "clusterId": KindCluster}

// members are those of bodies that name a resource. What mounts a volume can write
// to it.
var members = []Reference{
	{InBody, "templateId", KindTemplate, false},
	{InBody, "registry", KindRegistry, false},
	{InBody, "mounts.network.*.volumeId", KindVolume, true},
	{InBody, "networkVolumes.*", KindVolume, true},
}

// References lists the places of an operation's calls where ids of resources stand.
// That a parameter is listed does not mean that the operation has it.
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

// Replace returns a body with each id at the reference replaced by what to returns for it.
// Unchanged parts are shared with the body.
func (r Reference) Replace(body any, to func(id string) string) any {
	return replace(body, strings.Split(r.Name, "."), to)
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

// RecordOwner returns the id of the resource whose owner a record of a list belongs to:
// the cluster of a pod that is a member of one, the subject of a record of billing, and
// otherwise the record's own.
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
