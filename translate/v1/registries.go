package v1

import (
	"context"
	"net/http"

	"github.com/tollgate-dev/tollgate/translate"
)

var registryCreateForm = form{
	{name: "name", kind: aText, fate: Mapped, required: true},
	{name: "username", kind: aText, fate: Mapped, required: true},
	{name: "password", kind: aText, fate: Mapped, required: true},
}

// registryAuth writes registry credentials in v1's shape: never more than id and
// name.
func registryAuth(v any) map[string]any {
	return map[string]any{"id": translate.Text(v, "id"), "name": translate.Text(v, "name")}
}

func createRegistryAuth(ctx context.Context, r *request) (*reply, error) {
	name := r.body.text("name")
	registry, err := r.create(ctx, creation{
		about: about{verb: "create container registry auth", noun: "container registry auth"},
		call: &translate.Request{Operation: "createRegistry", Body: map[string]any{
			"name": name, "username": r.body.text("username"), "password": r.body.text("password"),
		}},
		list: "listRegistries", member: "registries", kind: "registry",
		same: func(listed any) bool { return translate.Text(listed, "name") == name },
	})
	if err != nil {
		return nil, err
	}
	return ok(registryAuth(registry)), nil
}

func listRegistryAuths(ctx context.Context, r *request) (*reply, error) {
	w := about{verb: "list container registry auths", noun: "container registry auth"}
	registries, err := r.list(ctx, w, "listRegistries", "registries")
	if err != nil {
		return nil, err
	}
	return ok(each(registries, registryAuth)), nil
}

func getRegistryAuth(ctx context.Context, r *request) (*reply, error) {
	w := about{verb: "get container registry auth", noun: "container registry auth"}
	registry, err := r.read(ctx, w, "getRegistry", r.param("containerRegistryAuthId"))
	if err != nil {
		return nil, err
	}
	return ok(registryAuth(registry)), nil
}

func deleteRegistryAuth(ctx context.Context, r *request) (*reply, error) {
	w := about{verb: "delete container registry auth", noun: "container registry auth"}
	if err := r.remove(ctx, w, "deleteRegistry", r.param("containerRegistryAuthId")); err != nil {
		return nil, err
	}
	return &reply{status: http.StatusNoContent}, nil
}
