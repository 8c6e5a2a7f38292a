package export

import (
	"encoding/json"
	"fmt"

	"github.com/tollgate-dev/tollgate/translate"
)

// entry is one element of an export. Its readers note the first fault and
// return the zero value then; null is absent.
type entry struct {
	value any
	path  string
	line  int
	fault *EntryError
}

func (e *entry) fail(field, format string, args ...any) {
	if e.fault == nil {
		e.fault = &EntryError{Line: e.line, Path: e.path + "." + field, Reason: fmt.Sprintf(format, args...)}
	}
}

// maxID bounds an id, as the gateway does on the wire.
const maxID = 200

func (e *entry) id() string {
	if _, ok := e.value.(map[string]any); !ok {
		if e.fault == nil {
			e.fault = &EntryError{Line: e.line, Path: e.path, Reason: "expected object"}
		}
		return ""
	}
	id := e.text("id")
	if id == "" || len(id) > maxID {
		e.fail("id", "expected an id")
	}
	return id
}

func (e *entry) text(field string) string {
	switch v := translate.At(e.value, field).(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		e.fail(field, "expected string")
		return ""
	}
}

func (e *entry) whole(field string) int64 {
	v := translate.At(e.value, field)
	if v == nil {
		return 0
	}
	_, number := v.(json.Number)
	n, ok := translate.Integer(v)
	if !number || !ok || n < 0 {
		e.fail(field, "expected a whole number")
		return 0
	}
	return n
}

func (e *entry) texts(field string) []string {
	v := translate.At(e.value, field)
	if v == nil {
		return nil
	}
	items, ok := v.([]any)
	texts := make([]string, 0, len(items))
	for i, item := range items {
		s, text := item.(string)
		if !text {
			e.fail(fmt.Sprintf("%s[%d]", field, i), "expected string")
		}
		texts = append(texts, s)
	}
	if !ok {
		e.fail(field, "expected array of strings")
	}
	return texts
}

func readEndpoint(e *entry) any {
	return translate.EndpointNote{
		TemplateID: e.text("templateId"), GPUTypeIDs: e.texts("gpuTypeIds"),
		NetworkVolumeID: e.text("networkVolumeId"), NetworkVolumeIDs: e.texts("networkVolumeIds"),
		IdleTimeout: e.whole("idleTimeout"), Version: e.whole("version"),
		Locations: e.text("locations"), GPUIDs: e.text("gpuIds"),
	}
}

func readTemplate(e *entry) any { return translate.TemplateNote{Readme: e.text("readme")} }

// readPod reads the GPU type where v1 told it: of the machine.
func readPod(e *entry) any {
	n := translate.PodNote{TemplateID: e.text("templateId"), GPUTypeID: e.text("gpuTypeId"), GPUCount: e.whole("gpuCount")}
	if machine := translate.At(e.value, "machine"); machine != nil && n.GPUTypeID == "" {
		m := &entry{value: machine, path: e.path + ".machine", line: e.line}
		n.GPUTypeID = m.text("gpuTypeId")
		if e.fault == nil {
			e.fault = m.fault
		}
	}
	if n.GPUTypeID == "" {
		n.GPUCount = 0 // says nothing by itself
	}
	return n
}
