package v1

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

//go:embed v1.openapi.json
var description []byte

//go:embed docs.html
var docsPage []byte

// brandMark is the placeholder for the platform's name in the embedded description.
const brandMark = "__BRAND__"

// describe returns v1's description of itself with the platform's name inserted. Each response that modifies it decodes it again.
func describe(brand string) ([]byte, error) {
	text := bytes.ReplaceAll(description, []byte(brandMark), []byte(brand))
	if !json.Valid(text) {
		return nil, fmt.Errorf("the embedded API description is not valid JSON after insertion of the brand %q", brand)
	}
	return text, nil
}

// getOpenAPI serves the description with the current ids of the platform. One launcher reads the data centres from the description without
// a credential. The response then uses the last catalog that any caller read, or the lists from the end of v1.
func getOpenAPI(ctx context.Context, r *request) (*reply, error) {
	catalog := r.Deps().Catalog
	var centres, types []any
	if r.Account() != "" {
		centres, _ = r.DataCenters(ctx, nil)
		types = r.gpuTypes(ctx)
	}
	if centres == nil {
		centres = translate.Items(catalog.Latest("listDataCenters"), "dataCenters")
	}
	if types == nil {
		types = translate.Items(catalog.Latest("listGpuTypes"), "gpus")
	}
	if len(centres) == 0 && len(types) == 0 {
		return &reply{status: 200, contentType: "application/json", encoded: r.api.description}, nil
	}
	var doc any
	dec := json.NewDecoder(bytes.NewReader(r.api.description))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("decode the embedded API description: %w", err)
	}
	patchLists(doc, legacy.IDs(centres), legacy.IDs(types))
	return ok(doc), nil
}

// patchLists replaces the fixed lists of ids in the description: the data centres of new pods, and every list of GPU types.
func patchLists(doc any, centres, types []string) {
	if field := translate.Members(doc, "components", "schemas", "PodCreateInput", "properties", "dataCenterIds"); field != nil &&
		len(centres) > 0 {
		field["default"] = translate.List(centres)
		if items := translate.Members(field, "items"); items != nil {
			items["enum"] = translate.List(centres)
		}
	}
	if len(types) > 0 {
		replaceTypes(doc, translate.List(types))
	}
}

// replaceTypes replaces each enum in the description that is a list of GPU types. It recognises them by a GPU that is in
// all of them.
func replaceTypes(v any, types []any) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if list, isList := member.([]any); isList && name == "enum" && isTypeList(list) {
				v[name] = types
				continue
			}
			replaceTypes(member, types)
		}
	case []any:
		for _, item := range v {
			replaceTypes(item, types)
		}
	}
}

func isTypeList(list []any) bool {
	for _, item := range list {
		if s, isText := item.(string); isText && strings.HasPrefix(s, "NVIDIA GeForce ") {
			return true
		}
	}
	return false
}

// getDocs serves the page that the Deprecation header links to. The page links to the gateway's reference.
func getDocs(context.Context, *request) (*reply, error) {
	return &reply{status: 200, contentType: "text/html; charset=utf-8", encoded: docsPage}, nil
}
