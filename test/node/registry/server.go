package registry

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// Server serves a node's pulls, whatever registry they are for.
type Server struct {
	images map[string]*Image
	blobs  map[string][]byte
}

// Serve serves the images until the process ends, and returns its address on loopback. The keys are repositories, such
// as docker.io/library/busybox; tags are ignored.
func Serve(images map[string]*Image) (address string, err error) {
	s := &Server{images: images, blobs: map[string][]byte{}}
	for _, image := range images {
		for digest, content := range image.blobs {
			s.blobs[digest] = content
		}
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listening for pulls: %w", err)
	}
	go func() {
		if err := http.Serve(listener, s); !errors.Is(err, net.ErrClosed) {
			panic(err) // the node could not pull images any more
		}
	}()
	return listener.Addr().String(), nil
}

// ServeHTTP implements the part of the OCI distribution API that pulls use.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rest, ok := strings.CutPrefix(r.URL.Path, "/v2/")
	if !ok {
		http.NotFound(w, r)
		return
	}
	if rest == "" {
		return
	}
	if _, blob, ok := cutLast(rest, "/blobs/"); ok {
		answer(w, r, "application/octet-stream", blob, s.blobs[blob])
		return
	}
	if repository, _, ok := cutLast(rest, "/manifests/"); ok {
		if image := s.images[r.URL.Query().Get("ns")+"/"+repository]; image != nil {
			answer(w, r, image.mediaType, digest(image.manifest), image.manifest)
			return
		}
	}
	http.NotFound(w, r)
}

// answer serves a manifest or blob; nil is one that does not exist.
func answer(w http.ResponseWriter, r *http.Request, mediaType, digest string, content []byte) {
	if content == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Docker-Content-Digest", digest)
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(content) // fails if the client has disconnected, which then retries
	}
}

func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}
