package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// errStarting is why the operator is not ready before its manager starts.
var errStarting = errors.New("the operator waits for the API server")

// answerProbes answers the probes at the address before the manager does, until stop is called: the operator is alive,
// or the kubelet would restart it while it waits for the API server, and is not ready.
func answerProbes(address string) (stop func(), err error) {
	if address == "" || address == "0" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for probes: %w", err)
	}
	paths := http.NewServeMux()
	paths.Handle("/healthz", healthz.CheckHandler{Checker: healthz.Ping})
	paths.Handle("/readyz", healthz.CheckHandler{Checker: func(*http.Request) error { return errStarting }})
	server := &http.Server{Handler: paths, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // it returns when the server is closed
	return func() { _ = server.Close() }, nil
}
