from as2d_cli.decoding.byte_tokens import ByteTokenizer


def test_bytes_are_the_text_and_special_ids_are_none():
    tokenizer = ByteTokenizer()
    ids = tokenizer.encode("née 日本")
    assert tokenizer.decode_bytes([*ids[:3], 256, -1, *ids[3:]]).decode() == "née 日本"
    assert tokenizer.encode("né") == [0x6E, 0xC3, 0xA9]
