"""An upload in the form that the federation config asks for: with a proof of its message's norm, or without one.

Everyone who makes, takes in or passes on an upload comes by here, with the federation config's check (None: there is
none):

    device    message -> bytes
    leader    bytes -> upload -> what the helper receives of it
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from federank.secagg.canonical import ID_BYTES
from federank.secagg.proof.parameters import Parameters
from federank.secagg.proof.upload import (
    CheckedUpload,
    checked_bytes,
    checked_report,
    decode_checked,
    encode_checked,
    send_checked,
)
from federank.secagg.round_config import Offer
from federank.secagg.upload import (
    Report,
    Upload,
    decode_upload,
    encode_upload,
    make_upload,
    new_secrets,
    report_of,
    upload_bytes,
)

AnyUpload = Upload | CheckedUpload


def bytes_of_message(
    check: Parameters | None, offer: Offer, message: NDArray[np.int32], random: Callable[[int], bytes]
) -> bytes:
    """The bytes of a message's upload; `random` is the operating system's (os.urandom)."""
    if check is None:
        return encode_upload(make_upload(offer, message, new_secrets(random)))
    return encode_checked(send_checked(check, offer, message, random))


def id_of(content: bytes) -> bytes:
    """The random id of an upload, from its bytes: it stands after the eight bytes that name the form."""
    return content[8 : 8 + ID_BYTES]


def bytes_needed(check: Parameters | None, length: int) -> int:
    """How many bytes an upload of this many numbers has."""
    return upload_bytes(length) if check is None else checked_bytes(check, length)


def upload_from(check: Parameters | None, content: bytes, length: int) -> AnyUpload:
    """An upload from the wire, once it is sure to have the form of one."""
    return decode_upload(content, length) if check is None else decode_checked(check, content, length)


def report_from(check: Parameters | None, offer_digest: bytes, upload: AnyUpload) -> Report:
    """What the leader sends to the helper about an upload."""
    if isinstance(upload, CheckedUpload):
        assert check is not None, "an upload with a proof is read where the federation config asks for one"
        return checked_report(check, offer_digest, upload)
    return report_of(offer_digest, upload)
