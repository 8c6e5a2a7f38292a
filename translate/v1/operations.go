package v1

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// serve responds to a request for one operation.
type serve = func(ctx context.Context, r *request) (*reply, error)

// resource describes a v1 resource with its create, list, get, update and delete handlers.
type resource struct {
	// name is part of operation ids such as createPod and listPods. successor and successors are its singular and plural
	// in v2; "" means the same.
	name, successor, successors string
	// path is the path of the list, id the name of the path parameter of one resource, and next the path of the list in v2.
	path, id, next string
	// creates and updates validate the bodies.
	creates, updates form
	// shortTimeout reports that clients of this resource give up after 10 seconds.
	shortTimeout bool
	// update is nil if the resource cannot be updated; it also serves POST .../update.
	create, list, get, update, delete serve
}

func op(id, method, path, v2 string) Operation {
	return Operation{ID: id, Method: method, Path: path, V2: v2}
}

// rows returns the operations in the order of the description, followed by more, which holds operations that only this
// resource has.
func (k resource) rows(more ...row) []row {
	const get, post, patch, del = http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete
	item, next := k.path+"/{"+k.id+"}", k.next+"/{"+k.id+"}"
	one := cmp.Or(k.successor, k.name)
	rows := []row{
		{Operation: op("create"+k.name, post, k.path, "create"+one), successor: k.next, form: k.creates, serve: k.create},
		{Operation: op("list"+k.name+"s", get, k.path, "list"+cmp.Or(k.successors, k.name+"s")), successor: k.next, serve: k.list},
		{Operation: op("get"+k.name, get, item, "get"+one), successor: next, serve: k.get},
	}
	if k.update != nil {
		rows = append(rows, row{Operation: op("update"+k.name, patch, item, "update"+one), successor: next, form: k.updates, serve: k.update})
	}
	rows = append(rows, row{Operation: op("delete"+k.name, del, item, "delete"+one), successor: next, serve: k.delete})
	if k.update != nil {
		rows = append(rows, row{
			Operation: op("update"+k.name+"ByPost", post, item+"/update", "update"+one), successor: next,
			form: k.updates, serve: k.update,
		})
	}
	rows = append(rows, more...)
	for i := range rows {
		rows[i].id, rows[i].shortTimeout = k.id, k.shortTimeout
	}
	return rows
}

// lists, gets and deletes return handlers of operations that need a single call.
func lists(show func(any) map[string]any, list func(*legacy.Session, context.Context) ([]any, error)) serve {
	return func(ctx context.Context, r *request) (*reply, error) {
		listed, err := list(r.Session, ctx)
		if err != nil {
			return nil, err
		}
		return ok(each(listed, show)), nil
	}
}

func gets(show func(any) map[string]any, get func(*legacy.Session, context.Context, string) (map[string]any, error)) serve {
	return func(ctx context.Context, r *request) (*reply, error) {
		return resultReply(show)(get(r.Session, ctx, r.id))
	}
}

func deletes(remove func(*legacy.Session, context.Context, string) error) serve {
	return func(ctx context.Context, r *request) (*reply, error) {
		return &reply{status: http.StatusNoContent}, remove(r.Session, ctx, r.id)
	}
}

// podActs returns the row of an action on a pod.
func podActs(verb string, serve serve) row {
	o := op(verb+"Pod", http.MethodPost, "/v1/pods/{podId}/"+verb, "podAction")
	o.IgnoresBody = true
	return row{Operation: o, successor: "/v2/pods/{podId}/action", serve: serve}
}

// bills returns the row of a billing operation.
func bills(id, path, v2, next string, serve serve) row {
	return row{Operation: op(id, http.MethodGet, "/v1/billing/"+path, v2), successor: "/v2/billing/" + next, serve: serve}
}

// operations returns all operations of v1 in the order of the description. Routes are built from it, and a test compares
// it with the description.
func operations() []row {
	public := func(id, path, v2 string) Operation {
		return Operation{ID: id, Method: http.MethodGet, Path: path, V2: v2, Public: true}
	}
	return slices.Concat([]row{
		{Operation: public("getOpenAPI", "/v1/openapi.json", "getOpenAPI"), successor: "/v2/openapi.json", serve: getOpenAPI},
		{Operation: public("getDocs", "/v1/docs", ""), serve: getDocs},
	}, resource{
		name: "Pod", path: "/v1/pods", id: "podId", next: "/v2/pods",
		creates: podCreateForm, updates: podUpdateForm,
		create: createPod, list: listPods, get: getPod, update: updatePod, delete: deletes((*legacy.Session).DeletePod),
	}.rows(
		podActs("start", podAction(legacy.Start)), podActs("stop", podAction(legacy.Stop)),
		podActs("reset", resetPod), podActs("restart", podAction(legacy.Restart)),
	), resource{
		name: "Endpoint", path: "/v1/endpoints", id: "endpointId", next: "/v2/serverless",
		creates: endpointCreateForm, updates: endpointUpdateForm,
		create: createEndpoint, list: listEndpoints, get: getEndpoint, update: updateEndpoint, delete: deletes((*legacy.Session).DeleteEndpoint),
	}.rows(), resource{
		name: "Template", path: "/v1/templates", id: "templateId", next: "/v2/templates",
		creates: templateCreateForm, updates: templateUpdateForm,
		create: createTemplate, list: listTemplates, get: getTemplate, update: updateTemplate, delete: deletes((*legacy.Session).DeleteTemplate),
	}.rows(), resource{
		name: "NetworkVolume", path: "/v1/networkvolumes", id: "networkVolumeId", next: "/v2/network-volumes",
		creates: volumeCreateForm, updates: volumeUpdateForm, shortTimeout: true,
		create: createNetworkVolume, list: lists(networkVolume, (*legacy.Session).Volumes), get: gets(networkVolume, (*legacy.Session).Volume),
		update: updateNetworkVolume, delete: deletes((*legacy.Session).DeleteVolume),
	}.rows(), resource{
		name: "ContainerRegistryAuth", successor: "Registry", successors: "Registries",
		path: "/v1/containerregistryauth", id: "containerRegistryAuthId", next: "/v2/registries",
		creates: registryCreateForm,
		create:  createRegistryAuth, list: lists(registryAuth, (*legacy.Session).Registries), get: gets(registryAuth, (*legacy.Session).Registry),
		delete: deletes((*legacy.Session).DeleteRegistry),
	}.rows(), []row{
		bills("podBilling", "pods", "listPodBilling", "pods", podBilling),
		bills("endpointBilling", "endpoints", "listServerlessBilling", "serverless", endpointBilling),
		bills("networkVolumeBilling", "networkvolumes", "listNetworkVolumeBilling", "network-volumes", networkVolumeBilling),
	})
}
