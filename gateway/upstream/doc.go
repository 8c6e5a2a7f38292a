// Package upstream sends requests to the platform. It holds the platform keys of the organisations, and adds a key to a request immediately
// before it sends the request. A connection is used with only one platform key.
//
// The package does not follow redirects, and decompresses a response only if the caller requests it. It never repeats a request that may
// cost money. Package http1 sends the requests; http.Transport sends WebSocket requests, and requests to a platform that requires HTTP/2.
// An [Account] reads the resources and bills of an organisation independently of callers.
package upstream
