//! The requests of RFC 9725: POST an offer, DELETE the session.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, post};
use namecast_media::whip::{Credentials, MAX_OFFER, Offer, Session};
use namecast_units::Duration;
use tokio::time::timeout;

use super::running::Running;
use super::{Input, PROTOCOL, Shared};
use crate::hexadecimal::hex;
use crate::push::{Refusal, Seen};

const OFFER_TYPE: &str = "application/sdp";
/// How long an offer may take to come.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Random octets of a user fragment, of a password and of a session's URL.
const SECRET_SIZE: usize = 16;

pub(super) fn router(shared: Arc<Shared>) -> Router {
    // PATCH, which adds addresses, is not needed where those that send find this side (RFC 9725, section 4.3.1): 405.
    Router::new()
        .route("/whip/{*name}", post(push))
        .route("/whip-session/{id}", delete(end))
        .with_state(shared)
}

/// What is answered to those that are refused: a status and a sentence.
type Refused = (StatusCode, Refusal);

async fn push(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    match answer(&shared, from, &name, request).await {
        Ok((id, answer)) => {
            let location = format!("/whip-session/{id}");
            let headers = [
                (header::CONTENT_TYPE, OFFER_TYPE.to_owned()),
                (header::LOCATION, location),
            ];
            (StatusCode::CREATED, headers, answer).into_response()
        }
        Err((status, why)) => {
            let sentence = format!("{}\n", text(&why));
            shared.gate.refuse(PROTOCOL, from, why);
            let mut response = (status, sentence).into_response();
            if status == StatusCode::UNAUTHORIZED {
                let scheme = header::HeaderValue::from_static("Bearer");
                response
                    .headers_mut()
                    .insert(header::WWW_AUTHENTICATE, scheme);
            }
            response
        }
    }
}

/// Starts a session. Returns the secret part of its URL, and the answer.
async fn answer(
    shared: &Arc<Shared>,
    from: SocketAddr,
    name: &str,
    request: Request,
) -> Result<(String, String), Refused> {
    let admitted = shared
        .gate
        .admit(name, bearer(request.headers()), from.ip())
        .await;
    let admitted = admitted.map_err(|why| (status(&why), why))?;
    let is_offer =
        |value: &header::HeaderValue| value.as_bytes().starts_with(OFFER_TYPE.as_bytes());
    if !request
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(is_offer)
    {
        let why = format!("the offer has to be sent as Content-Type: {OFFER_TYPE}");
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, Refusal::Malformed(why)));
    }
    let text = body(request.into_body()).await?;
    let malformed = |why: String| (StatusCode::UNPROCESSABLE_ENTITY, Refusal::Malformed(why));
    let offer = Offer::parse(&text).map_err(|error| malformed(error.to_string()))?;
    let credentials = Credentials {
        user_fragment: secret()?,
        password: secret()?,
    };
    let accepted = Session::accept(offer, &credentials, &shared.addresses(), Instant::now());
    let (session, answer) = accepted.map_err(|error| malformed(error.to_string()))?;
    let id = secret()?;
    let running = Running {
        inputs: shared.lock().add(&id, &credentials),
        shared: Arc::clone(shared),
        id: id.clone(),
        session,
        from,
        seen: Seen::default(),
    };
    tokio::spawn(running.run(admitted));
    Ok((id, answer))
}

async fn body(body: Body) -> Result<String, Refused> {
    let read = timeout(BODY_TIMEOUT, to_bytes(body, MAX_OFFER)).await;
    let refused = |status, why: &str| (status, Refusal::Malformed(why.to_owned()));
    let octets = read.map_err(|_| {
        refused(
            StatusCode::REQUEST_TIMEOUT,
            "the offer did not come in time",
        )
    })?;
    let octets = octets.map_err(|_| {
        refused(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the offer is too long, or ended early",
        )
    })?;
    String::from_utf8(octets.into())
        .map_err(|_| refused(StatusCode::BAD_REQUEST, "the offer is not UTF-8"))
}

async fn end(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Response {
    let inputs = shared
        .lock()
        .sessions
        .get(&id)
        .map(|route| route.inputs.clone());
    match inputs {
        Some(inputs) => {
            // One that has ended meanwhile does not hear it.
            let _ = inputs.send(Input::Delete).await;
            StatusCode::OK.into_response()
        }
        None => (
            StatusCode::NOT_FOUND,
            "There is no such session: it has ended.\n",
        )
            .into_response(),
    }
}

/// The key that a request shows (RFC 6750, section 2.1).
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
}

const fn status(why: &Refusal) -> StatusCode {
    match why {
        Refusal::Key | Refusal::Passphrase => StatusCode::UNAUTHORIZED,
        Refusal::OtherNames => StatusCode::FORBIDDEN,
        Refusal::Paused(_) => StatusCode::TOO_MANY_REQUESTS,
        Refusal::Name => StatusCode::BAD_REQUEST,
        Refusal::Taken(_) => StatusCode::CONFLICT,
        Refusal::Full | Refusal::Connections(_) | Refusal::Names => StatusCode::SERVICE_UNAVAILABLE,
        Refusal::Codec(_) | Refusal::Exceeded(_) | Refusal::Malformed(_) => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
    }
}

/// The sentence for the pusher.
fn text(why: &Refusal) -> String {
    match why {
        Refusal::Key => {
            "the key is missing or wrong: send it as Authorization: Bearer KEY (OBS: Bearer Token)"
                .to_owned()
        }
        why => why.to_string(),
    }
}

fn secret() -> Result<String, Refused> {
    let mut octets = [0; SECRET_SIZE];
    match getrandom::fill(&mut octets) {
        Ok(()) => Ok(hex(&octets)),
        Err(error) => Err((
            StatusCode::INTERNAL_SERVER_ERROR,
            Refusal::Malformed(error.to_string()),
        )),
    }
}
