package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/schema"
)

// older is a description; newer changes it.
const older = `{"paths":{
	"/v2/things":{"parameters":[{"$ref":"#/components/parameters/Kind"}],
		"get":{"operationId":"listThings","description":"old","responses":{
			"200":{"content":{"application/json":{"schema":{"type":"object","required":["things"],"properties":{"things":{"type":"array","items":{"$ref":"#/components/schemas/Thing"}}}}}}},"405":{},"default":{}}},
		"post":{"operationId":"createThing","requestBody":{"$ref":"#/components/requestBodies/Create"},"responses":{"201":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Thing"}}}},"405":{}}}},
	"/v2/things/{id}":{"delete":{"responses":{"204":{}}},"get":{"operationId":"getThing","x-unpublished":true,"responses":{}}},
	"/v2/things/{id}/logs":{"get":{"operationId":"getLogs","responses":{}}}},
	"components":{"parameters":{"Kind":{"name":"kind","in":"query","schema":{"type":"string"}}},
		"requestBodies":{"Create":{"content":{"application/json":{"schema":{"allOf":[{"$ref":"#/components/schemas/Thing"},{"required":["name"]}],"unevaluatedProperties":false}}}}},
		"schemas":{"Thing":{"type":"object","description":"a thing","properties":{
			"name":{"type":"string","minLength":1},"size":{"type":"integer","minimum":1},"kind":{"type":"string","enum":["A","B"]},"parts":{"type":"array","items":{"$ref":"#/components/schemas/Thing"}},
			"labels":{"type":"object","additionalProperties":{"type":"string"}}}}}}}`

func newer() string {
	return strings.NewReplacer(
		`"description":"old",`, `"description":"new","parameters":[{"name":"cursor","in":"query","schema":{"type":"string"}}],`,
		`"properties":{"things"`, `"properties":{"pagination":{"type":"object","properties":{"nextCursor":{"type":["string","null"]}}},"things"`,
		`"405":{},"default":{}`, `"413":{},"default":{}`, `{}}},"405":{}`, `{}}}`,
		`"enum":["A","B"]`, `"enum":["A","C"]`, `"minimum":1`, `"minimum":2`, `"required":["name"]`, `"required":["name","size"]`,
		`"get":{"operationId":"getThing","x-unpublished":true,"responses":{}}`, `"patch":{"operationId":"updateThing","responses":{}}`,
		`"operationId":"createThing"`, `"operationId":"makeThing"`, `"/v2/things/{id}/logs"`, `"/v2/things/{thingId}/logs"`,
	).Replace(older)
}

func TestCompare(t *testing.T) {
	got, err := schema.Compare([]byte(older), []byte(newer()))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`listThings: new query "cursor" "" -> "type string"`,
		`listThings: new response "pagination" "" -> "type object"`,
		`listThings: changed response "things[].kind" "enum B" -> "enum C"`,
		`listThings: changed response "things[].size" "minimum 1" -> "minimum 2"`,
		`listThings: new status "413" "" -> ""`,
		`createThing: changed body "kind" "enum B" -> "enum C"`,
		`createThing: changed body "size" "minimum 1" -> "minimum 2, required"`,
		`createThing: changed response "kind" "enum B" -> "enum C"`,
		`createThing: changed response "size" "minimum 1" -> "minimum 2"`,
		`updateThing: new operation "" "" -> ""`,
	}
	if diff := cmp.Diff(want, changeLines(got)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	back, err := schema.Compare([]byte(newer()), []byte(older))
	if err != nil || len(back) != 4 {
		t.Errorf("backwards: %v (%v), want the lists, the creates, and each of getThing and updateThing", back, err)
	}
	for _, d := range back {
		if d.Operation == "updateThing" && d.Changes[0].What != schema.Gone || d.Operation == "getThing" && d.Changes[0].What != schema.New {
			t.Errorf("backwards: %v", d)
		}
	}
	if same, err := schema.Compare([]byte(older), []byte(older)); err != nil || len(same) != 0 {
		t.Errorf("the same description: %v (%v), want no difference", same, err)
	}
}

// Each change of a description is reported.
func TestCompareReports(t *testing.T) {
	const text = `{"security":[{"key":[]}],"paths":{"/v2/things":{"post":{"operationId":"createThing",
		"parameters":[{"name":"tags","in":"query","explode":false,"schema":{"type":"array"}}],
		"requestBody":{"required":true,"content":{"application/json":{"schema":{"type":"object"}}}},
		"responses":{"201":{"headers":{"ETag":{}},"content":{"application/json":{}}},"default":{"content":{"application/problem+json":{"schema":{"properties":{"detail":{}}}}}}}}}}}`
	for _, tc := range []struct{ old, new, want string }{
		{`"application/json":{"schema"`, `"application/merge-patch+json":{"schema"`, `changed body "" "media type application/json" -> "media type application/merge-patch+json"`},
		{`"required":true`, `"required":false`, `changed body "" "required" -> ""`},
		{`"operationId"`, `"deprecated":true,"operationId"`, `changed operation "" "" -> "deprecated"`},
		{`"explode":false`, `"explode":true`, `changed query "tags" "explode false" -> "explode true"`},
		{`"explode":false`, `"explode":false,"style":"pipeDelimited"`, `changed query "tags" "" -> "style pipeDelimited"`},
		{`"application/json":{}`, `"text/plain":{}`, `changed response "" "media type application/json" -> "media type text/plain"`},
		{`"detail":{}`, `"detail":{},"code":{}`, `new error "code" "" -> ""`},
		{`"ETag":{}`, `"ETag":{},"Location":{}`, `new response header "Location" "" -> ""`},
		{`[{"key":[]}]`, `[]`, `changed operation "" "security [{\"key\":[]}]" -> "security []"`},
		{`"operationId"`, `"security":[],"operationId"`, `changed operation "" "security [{\"key\":[]}]" -> "security []"`},
		{`"operationId"`, `"security":[{"key":[]}],"operationId"`, ``},
	} {
		got, err := schema.Compare([]byte(text), []byte(strings.Replace(text, tc.old, tc.new, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, strings.TrimPrefix(strings.Join(changeLines(got), "\n"), "createThing: ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.new, diff)
		}
	}
}

// changeLines formats each change in one line.
func changeLines(all []schema.Difference) (out []string) {
	for _, d := range all {
		for _, c := range d.Changes {
			out = append(out, fmt.Sprintf("%s: %s %s %q %q -> %q", d.Operation, c.What, c.In, c.Name, c.Older, c.Newer))
		}
	}
	return out
}

// Descriptions of any quality end in a result or an error.
func TestCompareHostile(t *testing.T) {
	doubling := new(strings.Builder)
	for i := range 64 {
		fmt.Fprintf(doubling, `"S%d":{"allOf":[{"$ref":"#/components/schemas/S%d"},{"$ref":"#/components/schemas/S%d"}]},`, i, i+1, i+1)
	}
	for name, tc := range map[string]struct{ text, err string }{
		"no JSON":            {`paths:`, "newer description: not JSON"},
		"no object":          {`[]`, "not an OpenAPI description"},
		"another document":   {`{"swagger":"2.0"}`, "not an OpenAPI description"},
		"too many schemas":   {`{"paths":{"/v2/things":{"get":{"requestBody":{"content":{"j":{"schema":{"$ref":"#/components/schemas/S0"}}}},"responses":{}}}},"components":{"schemas":{` + doubling.String() + `"S64":{}}}}`, "references are resolved"},
		"wrong types":        {`{"paths":{"/v2/things":{"get":{"parameters":{"a":1},"requestBody":[],"responses":[1],"operationId":7},"post":3,"parameters":"x"},"/b":null}}`, ""},
		"a loop":             {strings.Replace(older, `"type":"object","description":"a thing"`, `"$ref":"#/components/schemas/Thing"`, 1), ""},
		"a dangling pointer": {strings.ReplaceAll(older, "#/components", "#/nowhere"), ""},
		"a remote reference": {strings.ReplaceAll(older, "#/components", "http://127.0.0.1:1/components"), ""},
	} {
		_, err := schema.Compare([]byte(older), []byte(tc.text))
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %v, want %q", name, err, tc.err)
		}
	}
}

func TestLacks(t *testing.T) {
	api := load(t)
	got, err := api.MissingOperations([]byte(`{"paths":{"/v2/pods/{podId}":{"get":{},"put":{}},"/v2/tags":{"get":{"operationId":"listTags"}},"/v2/pods":{"get":{}}}}`))
	if diff := cmp.Diff([]string{"GET /v2/tags", "PUT /v2/pods/{podId}"}, got); diff != "" || err != nil {
		t.Errorf("%v, operations that are not described (-want +got):\n%s", err, diff)
	}
	if got, err := api.MissingOperations(api.Document()); err != nil || len(got) > 0 {
		t.Errorf("its own description: lacks %v (%v)", got, err)
	}
	if _, err := api.MissingOperations([]byte(`<html>`)); err == nil {
		t.Error("a page: no error")
	}
}
