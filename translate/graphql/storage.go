package graphql

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/translate"
)

func storageTypes() map[string]objectType {
	text := func(name string) resolver {
		return get(func(m map[string]any) any { return orNull(translate.Text(m, name)) })
	}
	return map[string]objectType{
		"RegistryAuth": {"id": text("id"), "name": text("name")},
		"NetworkVolume": {
			"id": text("id"), "name": text("name"), "dataCenterId": text("dataCenter"),
			"size": get(func(m map[string]any) any { return translate.Whole(m, "size") }),
			"dataCenter": get(func(m map[string]any) any {
				if id := translate.Text(m, "dataCenter"); id != "" {
					return &dataCenter{id: id}
				}
				return nil
			}),
		},
	}
}

// required reads texts that must be there, and names the first that is not.
func required(a args, names ...string) (map[string]any, error) {
	body := map[string]any{}
	for _, name := range names {
		if a.text(name) == "" {
			return nil, badInput(name + " is required")
		}
		body[name] = a.text(name)
	}
	return body, nil
}

func saveRegistryAuth(ctx context.Context, x *exchange, in input) (any, error) {
	b, err := required(in.object("input"), "name", "username", "password")
	if err != nil {
		return nil, err
	}
	return x.createOnce(ctx, creation{
		operation: "createRegistry", body: b, kind: kindRegistry, list: "listRegistries", member: "registries", claims: "registry",
	})
}

func deleteRegistryAuth(ctx context.Context, x *exchange, in input) (any, error) {
	id := in.text("registryAuthId")
	if id == "" {
		return nil, badInput("registryAuthId is required")
	}
	if err := x.remove(ctx, "deleteRegistry", id, kindRegistry); err != nil {
		return nil, err
	}
	return true, nil
}

func createNetworkVolume(ctx context.Context, x *exchange, in input) (any, error) {
	a := in.object("input")
	b, err := required(a, "name", "dataCenterId")
	if err != nil {
		return nil, err
	}
	size, given := a.int("size")
	if !given || size < 0 {
		return nil, badInput("size is required")
	}
	if size < 10 {
		x.Warn("size", "raised to the minimum of 10")
		size = 10
	}
	b["dataCenter"], b["size"] = b["dataCenterId"], translate.Int(size)
	delete(b, "dataCenterId")
	return x.createOnce(ctx, creation{
		operation: "createNetworkVolume", body: b, kind: kindVolume, list: "listNetworkVolumes", member: "networkVolumes", claims: "networkvolume",
	})
}

func updateNetworkVolume(ctx context.Context, x *exchange, in input) (any, error) {
	a := in.object("input")
	id := a.text("id")
	if id == "" {
		return nil, badInput("id is required")
	}
	change := map[string]any{}
	set(change, "name", a.text("name"))
	if size, given := a.int("size"); given && size != 0 {
		change["size"] = translate.Int(size)
	}
	// v2 refuses an empty change.
	return x.changeOrFetch(ctx, "updateNetworkVolume", "getNetworkVolume", id, change, kindVolume)
}

func deleteNetworkVolume(ctx context.Context, x *exchange, in input) (any, error) {
	id := in.object("input").text("id")
	if id == "" {
		return nil, badInput("id is required")
	}
	return nil, x.remove(ctx, "deleteNetworkVolume", id, kindVolume)
}

// creation is the making of a resource that has a name.
type creation struct {
	operation string
	body      map[string]any
	kind      kind
	// list and member name the collection to look in when the answer is lost,
	// claims what results are marked as.
	list, member, claims string
}

// createOnce creates, and when the answer is lost looks for the result before
// it tries a second and last time, so that nothing is made twice.
func (x *exchange) createOnce(ctx context.Context, c creation) (any, error) {
	r := request(c.operation, "", c.body, nil)
	for try := 0; ; try++ {
		resp, err := x.Send(ctx, r, translate.Once)
		x.forget()
		id := ""
		if err == nil {
			id = translate.Text(resp.Body, "id")
		}
		switch {
		case err == nil && resp.OK() && id != "":
			x.claim(ctx, c, id)
			return resp.Body, nil
		case err == nil && !resp.OK() && resp.Status < http.StatusInternalServerError:
			return nil, refusal(resp, c.kind)
		}
		found, certain := x.findCreated(ctx, c)
		if found != nil {
			return found, nil
		}
		if err == nil && resp.OK() {
			return nil, internal(errors.New(c.operation + " answered without an id"))
		}
		if try == 1 || !certain || x.Pause(ctx, createPause) != nil {
			return body(resp, err, c.kind)
		}
	}
}

// createPause is the wait before a create is sent again.
const createPause = 500 * time.Millisecond

// claim marks a resource as answered; false when another request had it. The
// key is the one the REST dialect uses, so that neither takes the other's.
func (x *exchange) claim(ctx context.Context, c creation, id string) bool {
	return translate.Claim(ctx, x.Dialogue, c.claims+"/"+id)
}

// findCreated looks for a resource that shows what was asked for and that no
// request was answered with; certain means that there is none of the name.
func (x *exchange) findCreated(ctx context.Context, c creation) (found any, certain bool) {
	list, err := x.list(ctx, c.list, c.member, nil, c.kind)
	if err != nil {
		return nil, false
	}
	certain = true
	for _, r := range list {
		if translate.Text(r, "name") != c.body["name"] {
			continue
		}
		certain = false
		if shows(r, c.body) && x.claim(ctx, c, translate.Text(r, "id")) {
			return r, true
		}
	}
	return nil, certain
}

// shows reports whether a record agrees with a body wherever it has the member.
func shows(record any, body map[string]any) bool {
	for name, want := range body {
		switch want := want.(type) {
		case string:
			if got, ok := translate.At(record, name).(string); ok && got != want {
				return false
			}
		case json.Number:
			if translate.At(record, name) != nil && translate.Whole(record, name) != translate.Whole(want) {
				return false
			}
		}
	}
	return true
}
