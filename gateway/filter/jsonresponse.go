package filter

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// JSONResponse returns a response with status 200, v as JSON body, and Cache-Control: no-store. It returns an error if v cannot be encoded.
func JSONResponse(v any) (*Response, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode response: %w", err)
	}
	return &Response{
		Status: http.StatusOK, Body: body,
		Header: http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"no-store"}},
	}, nil
}
