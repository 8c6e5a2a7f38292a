// Package main drives a client that oapi-codegen generated from the gateway's description, in client.go beside this file. It prints
// {"calls": {label: {"result": ...} or {"error": string}}, "missing": []}.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
)

type call struct {
	Result any    `json:"result,omitempty"`
	Error  string `json:"error,omitempty"`
}

var calls = make(map[string]call)

// kept keeps what a call returned, and returns the id of the resource that it made.
func kept(label string, status int, body []byte, err error) string {
	var said map[string]any
	_ = json.Unmarshal(body, &said)
	switch {
	case err != nil:
		calls[label] = call{Error: err.Error()}
	case status >= http.StatusMultipleChoices:
		calls[label] = call{Error: fmt.Sprintf("%d %s", status, body)}
	default:
		calls[label] = call{Result: map[string]any{"status": status, "body": said}}
	}
	id, _ := said["id"].(string)
	return id
}

func main() {
	ctx := context.Background()
	authorize := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+os.Getenv("KEY"))
		return nil
	}
	c, err := NewClientWithResponses(os.Getenv("GATEWAY"), WithRequestEditorFn(authorize))
	if err != nil {
		panic(err)
	}
	one := 1
	gpus, err := c.ListGpuTypesWithResponse(ctx, &ListGpuTypesParams{Count: &one})
	kept("gpu types", gpus.StatusCode(), gpus.Body, err)
	if gpus.JSON200 == nil || len(gpus.JSON200.Gpus) == 0 {
		calls["gpu types"] = call{Error: "the client did not decode the list"}
	}

	made, err := c.CreatePodWithResponse(ctx, decoded[CreatePodJSONRequestBody](`{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4","count":1}}`))
	pod := kept("create pod", made.StatusCode(), made.Body, err)
	pods, err := c.ListPodsWithResponse(ctx, &ListPodsParams{})
	kept("pods", pods.StatusCode(), pods.Body, err)
	stopped, err := c.PodActionWithResponse(ctx, pod, decoded[PodActionJSONRequestBody](`{"action":"stop"}`))
	kept("stop pod", stopped.StatusCode(), stopped.Body, err)
	gone, err := c.DeletePodWithResponse(ctx, pod)
	kept("delete pod", gone.StatusCode(), gone.Body, err)
	denied, err := c.CreatePodWithResponse(ctx, decoded[CreatePodJSONRequestBody](`{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4","count":8}}`))
	kept("denied pod", denied.StatusCode(), denied.Body, err)

	endpoint, err := c.CreateEndpointWithResponse(ctx, decoded[CreateEndpointJSONRequestBody](
		`{"name":"e","image":"img:1","gpu":{"pools":["ADA_24"]},"scaling":{"type":"QUEUE_DELAY","queueDelay":4},"workers":{"min":0,"max":1}}`))
	id := kept("create endpoint", endpoint.StatusCode(), endpoint.Body, err)
	workers, err := c.ListEndpointWorkersWithResponse(ctx, id)
	kept("workers", workers.StatusCode(), workers.Body, err)
	deleted, err := c.DeleteEndpointWithResponse(ctx, id)
	kept("delete endpoint", deleted.StatusCode(), deleted.Body, err)
	if err := json.NewEncoder(os.Stdout).Encode(map[string]any{"calls": calls, "missing": []string{}}); err != nil {
		panic(err)
	}
}

// decoded is a body as the generated types have it.
func decoded[T any](text string) (body T) {
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		panic(err)
	}
	return body
}
