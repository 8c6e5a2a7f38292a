package filter

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// JSONResponse is an answer to one caller, which is not to be kept.
func JSONResponse(v any) (*Response, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode an answer: %w", err)
	}
	return &Response{
		Status: http.StatusOK, Body: body,
		Header: http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"no-store"}},
	}, nil
}
