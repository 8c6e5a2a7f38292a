package v1

import (
	"context"

	"github.com/tollgate-dev/tollgate/translate"
)

var registryCreateForm = form{
	{name: "name", plain: true, required: true},
	{name: "username", plain: true, required: true},
	{name: "password", plain: true, required: true},
}

// registryAuth returns registry credentials in v1's form, which has only the id and the name.
func registryAuth(v any) map[string]any {
	return map[string]any{"id": translate.Text(v, "id"), "name": translate.Text(v, "name")}
}

func createRegistryAuth(ctx context.Context, r *request) (*reply, error) {
	return resultReply(registryAuth)(r.CreateRegistry(ctx, r.form.plain(r.body)))
}
