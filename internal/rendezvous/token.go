package rendezvous

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// errUnknown is returned for tokens that do not prove a pod.
var errUnknown = errors.New("not the token of a pod for the rendezvous")

// clockSkew is how long after its expiry a token is still reviewed. The API server allows as much.
const clockSkew = time.Minute

// claims are the parts of a token's payload that every token of a pod for the rendezvous has.
type claims struct {
	Audience audience `json:"aud"`
	Expires  int64    `json:"exp"`
	Cluster  struct {
		Pod struct {
			Name string `json:"name"`
			UID  string `json:"uid"`
		} `json:"pod"`
	} `json:"kubernetes.io"`
}

// audience is one string or several (RFC 7519, section 4.1.3).
type audience []string

func (a *audience) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		*a = make(audience, 1)
		return json.Unmarshal(text, &(*a)[0])
	}
	return json.Unmarshal(text, (*[]string)(a))
}

// checkClaims returns an errUnknown if the token's own claims show that the API server would not accept it for a pod.
// It proves nothing, as it does not verify the signature: it spares the API server reviews of tokens that are not worth
// it.
func checkClaims(token string, now time.Time) error {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return fmt.Errorf("%w: it is no JSON Web Token", errUnknown)
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return fmt.Errorf("%w: its claims are not in base64: %w", errUnknown, err)
	}
	var content claims
	if err := json.Unmarshal(payload, &content); err != nil {
		return fmt.Errorf("%w: reading its claims: %w", errUnknown, err)
	}
	expires := time.Unix(content.Expires, 0)
	switch {
	case !slices.Contains(content.Audience, protocol.Audience):
		return fmt.Errorf("%w: its audience is not %s", errUnknown, protocol.Audience)
	case now.After(expires.Add(clockSkew)):
		return fmt.Errorf("%w: it expired at %s", errUnknown, expires.UTC().Format(time.RFC3339))
	case content.Cluster.Pod.Name == "" || content.Cluster.Pod.UID == "":
		return fmt.Errorf("%w: it is not bound to a pod", errUnknown)
	}
	return nil
}
