package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/musterhq/muster/internal/certificate"
)

// metricsServer returns the options of the server of metrics, and of profiles if these are enabled.
func metricsServer(o options) (metricsserver.Options, error) {
	out := metricsserver.Options{BindAddress: o.metricsAddress}
	if o.metricsSecure {
		out.SecureServing = true
		out.FilterProvider = filters.WithAuthenticationAndAuthorization
		own := &certificate.SelfSigned{Name: "localhost", Clock: clock.RealClock{}}
		out.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.GetCertificate = own.GetCertificate }}
	}
	if o.profiling {
		if err := mayProfile(o); err != nil {
			return metricsserver.Options{}, err
		}
		out.ExtraHandlers = profiles()
	}
	return out, nil
}

// mayProfile returns an error if profiles, which expose the operator's memory, could be read by everybody who can reach
// the address.
func mayProfile(o options) error {
	host, _, err := net.SplitHostPort(o.metricsAddress)
	if err != nil {
		return fmt.Errorf("--profiling needs an address that serves metrics, and --metrics-bind-address is %q: %w",
			o.metricsAddress, err)
	}
	if ip := net.ParseIP(host); !o.metricsSecure && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return errors.New("--profiling exposes the operator's memory: set --metrics-secure, or a --metrics-bind-address on loopback")
	}
	return nil
}

// profiles returns the handlers of net/http/pprof.
func profiles() map[string]http.Handler {
	return map[string]http.Handler{
		"/debug/pprof/":        http.HandlerFunc(pprof.Index),
		"/debug/pprof/cmdline": http.HandlerFunc(pprof.Cmdline),
		"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
		"/debug/pprof/symbol":  http.HandlerFunc(pprof.Symbol),
		"/debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
	}
}
